// The sephash table under clients that die at exact places: in the middle of appends, merges and splits.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "check/campaign.h"
#include "tests/engines/sephash/split_scenarios.h"
#include "tests/support/sanitized.h"

namespace farside::index::sephash {
namespace {

struct Death {
  const char* name;
  Dying dying;
};

class SephashCrash : public testing::TestWithParam<Death> {};
INSTANTIATE_TEST_SUITE_P(All, SephashCrash,
                         testing::Values(Death{"Append", Dying::kAppend}, Death{"Insert", Dying::kInsert},
                                         Death{"Delete", Dying::kDelete}, Death{"Merge", Dying::kMerge},
                                         Death{"Split", Dying::kSplit},
                                         Death{"SplitThatRenewsTags", Dying::kRenewal}),
                         [](const auto& death) { return std::string(death.param.name); });

TEST_P(SephashCrash, ClientDiesAtEveryVerb_OthersGoOnWithoutWaiting) {
  // Given a table, a client that knows it as it was, and one that comes later.
  // When a third one dies in the middle of a change, at every verb and in every way.
  // Expect that both go on at once, that the history can be explained, that the cursor has every key once,
  // and that nothing is leaked; whether they touch what stays in a segment first, or what moves.
  EXPECT_EQ(ClientDies(GetParam().dying, Then::kStay), "");
  EXPECT_EQ(ClientDies(GetParam().dying, Then::kMove), "");
}

TEST_P(SephashCrash, ClientDiesAtEveryVerbOnTwoNodes_OthersGoOnWithoutWaiting) {
  // Given the same on two memory nodes. Expect the same
  EXPECT_EQ(ClientDies(GetParam().dying, Then::kMove, 2), "");
}

TEST(SephashCompletion, ClientDiesWhileItCompletesADirectory_AnotherDoes) {
  // Given a segment that was split by a client which died before the directory knew
  // When a client comes to the sibling, completes the directory, and dies at every verb of that
  // Expect that the next one completes it, and finds every key; on one node and on two
  EXPECT_EQ(CompleterDies(), "");
  EXPECT_EQ(CompleterDies(2), "");
}

TEST(SephashCompletion, EveryVerbOfEveryShortScript_SurvivorsGoOn) {
  // Given scripts of two or three clients, and tables that pass through everything
  // When each of their verbs in turn is the place of each kind of fault
  // Expect every history to be linearizable, and every table to be whole at the end
  std::vector<std::shared_ptr<Engine>> engines;
  std::vector<Engine*> subjects;
  for (const OptionMap& options : (*MakeSephashEngine({}))->stress_options()) {
    engines.push_back(*MakeSephashEngine(options));
    subjects.push_back(engines.back().get());
  }
  check::CampaignOptions options;
  options.seeds = 24 / kFewer;
  options.crash = true;
  const check::CampaignReport report = check::RunCampaign(check::Subjects(subjects), options);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": "
                                   << report.first_violation->problem;
  EXPECT_GT(report.crash_points, options.seeds * 200);
}

}  // namespace
}  // namespace farside::index::sephash
