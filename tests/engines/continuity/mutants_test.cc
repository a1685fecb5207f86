// Every planted bug of the continuity table is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "check/workload.h"
#include "index/continuity/continuity.h"
#include "index/continuity/mutants.h"
#include "pool/mutants.h"
#include "tests/engines/continuity/abandoned_handler.h"
#include "tests/engines/continuity/scenarios.h"
#include "tests/engines/continuity/sweep.h"
#include "tests/engines/evacuation_scenarios.h"
#include "tests/support/detector.h"
#include "tests/support/sanitized.h"
#include "tests/support/script_search.h"

namespace farside::index::continuity {
namespace {

std::string RunScripts(uint64_t seeds, const check::WorkloadShape& shape) {
  std::vector<std::shared_ptr<Engine>> engines;
  for (const OptionMap& some : (*MakeContinuityEngine({}))->stress_options())
    engines.push_back(*MakeContinuityEngine(some));
  return SearchScripts(engines, {.seeds = seeds, .shape = shape});
}

std::string CutPower() {
  for (const SweepScript& script : PowerScripts()) {
    const SweepReport report = Sweep(script, {.most_states = 1024, .samples = 64});
    if (!report.problem.empty()) return report.problem;
  }
  return "";
}

std::string CutPowerByChance(uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const SweepReport report = Sweep(ScriptByChance(seed, 24), {.most_states = 128, .samples = 32}, seed);
    if (!report.problem.empty()) return report.problem;
  }
  return "";
}

// The quick ones first. None depends on chance but the last two.
std::vector<Detector> Detectors(uint64_t fewer = 1) {
  const auto long_scripts = check::WorkloadShape{.clients = 4, .operations = 40, .keys = 12};
  return {{"power cuts", CutPower},
          {"a slot is used again under a reader", ASlotIsUsedAgainUnderAReader},
          {"a slot of a group is used again under a reader", AGroupSlotIsUsedAgainUnderAReader},
          {"a reader looks while a handler stands still", AReaderLooksWhileAHandlerStandsStill},
          {"a pair was left odd", APairWasLeftOdd},
          {"handlers give up", [] { return HandlersGiveUp().problem; }},
          {"a sweep settles pairs", ASweepSettlesPairs},
          {"power comes back", PowerComesBack},
          {"evacuations", [=] { return RunScripts(100 / fewer, kEvacuations); }},
          {"a reader stops while its record moves",
           [] { return AReaderStopsWhileItsRecordMoves("continuity", MakeContinuityEngine); }},
          {"power is cut when a table was made", PowerIsCutWhenATableWasMade},
          {"an answer is lost", AnAnswerIsLost},
          {"a segment is full", ASegmentIsFull},
          {"a reader has an old root", AReaderHasAnOldRoot},
          {"the old table is used again", TheOldTableIsUsedAgain},
          {"power cuts by chance", [=] { return CutPowerByChance(40 / fewer); }},
          {"long scripts", [=] { return RunScripts(60 / fewer, long_scripts); }}};
}

class ContinuityMutant : public testing::TestWithParam<MutantName> {};

TEST_P(ContinuityMutant, IsCaught) {
  // Given the continuity table with one planted bug.
  // When the sweeps, the scenarios and the searches run, one after the other.
  // Expect that one of them catches it.
  ExpectCaught(GetParam(), Detectors());
}

INSTANTIATE_TEST_SUITE_P(All, ContinuityMutant, testing::ValuesIn(kAllMutants), NameOfBug);

TEST(ContinuityMutants, HandlerKeptAtOpening_IsCaught) {
  // Given a pool whose opening keeps the word of the handler that ran when the power was cut.
  // When a pair that this handler was changing is read.
  // Expect that the readers' wait is noticed: the pair looks like one that is being changed for ever.
  ExpectCaught(pool::kKeepHandler, {{"power comes back", PowerComesBack}});
}

TEST(ContinuityMutants, WithoutOneNothingIsCaught) {
  // Given the same build with no bug switched on.
  // When the sweeps, the scenarios and the searches that catch the mutants run.
  // Expect that they catch nothing.
  for (const Detector& detector : Detectors(4 * kFewer)) EXPECT_EQ(detector.run(), "") << detector.name;
}

}  // namespace
}  // namespace farside::index::continuity
