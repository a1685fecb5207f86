// Every engine while its records are moved: beside updates, compare-and-set, deletes, inserts and searches,
// and when the client that moves them dies at any verb, or sleeps past its lease.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "check/campaign.h"
#include "store/engines.h"
#include "tests/engines/evacuation_scenarios.h"

namespace farside {
namespace {

class EvacuationSimulation : public testing::TestWithParam<std::string> {
 protected:
  EvacuationSimulation() {
    const std::shared_ptr<index::Engine> usual = *store::MakeEngine(GetParam(), {});
    for (const index::OptionMap& options : usual->stress_options())
      engines_.push_back(*store::MakeEngine(GetParam(), options));
    campaign_.shape = {.clients = 3, .operations = 12, .keys = 2, .evacuates = true};
  }

  std::string Violation() const {
    std::vector<index::Engine*> subjects;
    for (const auto& engine : engines_) subjects.push_back(engine.get());
    const check::CampaignReport report = check::RunCampaign(check::Subjects(subjects), campaign_);
    EXPECT_GT(report.operations, 0u);
    EXPECT_GT(report.evacuated, 0u) << "no record was moved";
    return report.ok() ? "" : report.first_violation->run.ToString() + ": " + report.first_violation->problem;
  }

  std::vector<std::shared_ptr<index::Engine>> engines_;
  check::CampaignOptions campaign_;
};

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const store::EngineEntry& entry : store::Engines()) names.emplace_back(entry.name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Engines, EvacuationSimulation, testing::ValuesIn(Names()),
                         [](const auto& engine) { return engine.param; });

TEST_P(EvacuationSimulation, BesideEveryOperation_NoOperationNotices) {
  // Given clients that change and search two keys, and move the records in all of their chunks again and
  // again; with faults by chance, and without. Expect histories that are linearizable, tables that are whole,
  // and no byte lost or freed twice.
  campaign_.seeds = 60;
  campaign_.crash = true;
  campaign_.sweep = false;
  EXPECT_EQ(Violation(), "");
}

TEST_P(EvacuationSimulation, TheEvacuatorDiesAtEveryVerb_OthersAdoptAndSweep) {
  // Given the same, with few operations. When a client dies before each verb, after it, or loses its
  // completion, or sleeps past its lease there. Expect the same, with all that it held adopted and swept.
  campaign_.seeds = 4;
  campaign_.crash = true;
  EXPECT_EQ(Violation(), "");
}

TEST_P(EvacuationSimulation, AReaderStopsWhileItsRecordMoves_AndFindsIt) {
  // Given a reader that stops at every step of its search. When the record moves meanwhile, and the chunks
  // that are free then are used for other records. Expect that the reader finds its record: what it may still
  // read is not used again.
  for (const store::EngineEntry& entry : store::Engines()) {
    if (entry.name != GetParam()) continue;
    EXPECT_EQ(index::AReaderStopsWhileItsRecordMoves(GetParam(), entry.make), "");
  }
}

}  // namespace
}  // namespace farside
