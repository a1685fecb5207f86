// Every planted bug of the sephash table is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "check/workload.h"
#include "index/sephash/mutants.h"
#include "index/sephash/sephash.h"
#include "tests/engines/sephash/full_pool_scenarios.h"
#include "tests/engines/sephash/scenarios.h"
#include "tests/engines/sephash/split_scenarios.h"
#include "tests/support/detector.h"
#include "tests/support/sanitized.h"
#include "tests/support/script_search.h"

namespace farside::index::sephash {
namespace {

using check::WorkloadShape;

std::string Search(const std::vector<OptionMap>& options, uint64_t seeds, const WorkloadShape& shape) {
  std::vector<std::shared_ptr<Engine>> engines;
  for (const OptionMap& some : options) engines.push_back(*MakeSephashEngine(some));
  return SearchScripts(engines, {.seeds = seeds, .shape = shape});
}

// The quick ones first.
std::vector<Detector> Detectors(uint64_t fewer = 1) {
  const std::vector<OptionMap> stress = (*MakeSephashEngine({}))->stress_options();
  // CurSegments of two lines and of three, which can be read torn.
  const std::vector<OptionMap> lines = {{{"entries", "7"}, {"main", "64"}, {"filter", "no"}},
                                        {{"entries", "8"}, {"main", "1"}, {"depth_bits", "2"}},
                                        {{"entries", "14"}, {"main", "2"}, {"window", "1"}}};
  const auto long_scripts = WorkloadShape{.clients = 4, .operations = 40, .keys = 12};
  return {
      {"evacuations", [=] { return Search(stress, 100 / fewer, kEvacuations); }},
      {"short scripts", [=] { return Search(stress, 60 / fewer, {}); }},
      {"a cursor meets splits", CursorMeetsSplits},
      {"keys with the same tag", KeysWithTheSameTag},
      {"a look meets own merges", LookMeetsOwnMerges},
      {"a look meets own appends", LookMeetsOwnAppends},
      {"the filter is trusted", FilterIsTrusted},
      {"a split segment is merged again", SplitSegmentIsMergedAgain},
      {"a remembered MainSegment is gone", RememberedMainIsGone},
      {"a MainSegment comes back", MainComesBackAtItsAddress},
      {"a MainSegment comes back during a search", MainComesBackDuringASearch},
      {"a MainSegment comes back where READs have no order",
       [=] { return MainComesBackWhereReadsHaveNoOrder(400 / fewer); }},
      {"the word of a slot comes back", [] { return WordOfASlotComesBack(/*deletes=*/false); }},
      {"the word of a tombstone comes back", [] { return WordOfASlotComesBack(/*deletes=*/true); }},
      {"slots name what can be reached", [=] { return SlotsNameWhatCanBeReached(100 / fewer); }},
      {"padding comes back", PaddingOfASlotComesBack},
      {"splits come before tags are renewed", SplitsComeBeforeTagsAreRenewed},
      {"several splits behind", [] { return DirectoryIsSeveralSplitsBehind(); }},
      {"two insert a key", [=] { return TwoInsertAKey(200 / fewer); }},
      {"two delete in a full pool", [=] { return TwoDeleteInAFullPool(16 / fewer); }},
      {"a client dies in a split, what stays is changed",
       [] { return ClientDies(Dying::kSplit, Then::kStay); }},
      {"a client dies in a split, what moves is changed",
       [] { return ClientDies(Dying::kSplit, Then::kMove); }},
      {"a walk meets a sibling", WalkMeetsASiblingThatTheDirectoryDoesNotKnow},
      {"a client dies in a merge", [] { return ClientDies(Dying::kMerge, Then::kStay); }},
      {"changers fall asleep", ChangersFallAsleep},
      {"two need a spare", [=] { return TwoNeedASpare(24 / fewer); }},
      {"a spare is still read", SpareIsStillRead},
      {"an insert meets own puts", [=] { return InsertMeetsOwnPuts(3000 / fewer); }},
      {"looks meet merges", [=] { return LooksMeetMerges(200 / fewer); }},
      {"stale clients meet splits", [=] { return StaleClientsMeetSplits(200 / fewer); }},
      {"CurSegments of several lines", [=] { return Search(lines, 100 / fewer, long_scripts); }},
      {"long scripts", [=] { return Search(stress, 100 / fewer, long_scripts); }},
  };
}

class SephashMutant : public testing::TestWithParam<MutantName> {};

TEST_P(SephashMutant, IsCaught) {
  // Given the sephash table with one planted bug.
  // When the searches and scenarios run, one after the other.
  // Expect that one of them catches it.
  ExpectCaught(GetParam(), Detectors());
}

INSTANTIATE_TEST_SUITE_P(All, SephashMutant, testing::ValuesIn(kAllMutants), NameOfBug);

TEST(SephashMutants, WithoutOneNothingIsCaught) {
  // Given the same build with no bug switched on.
  // When the searches and scenarios that catch the mutants run.
  // Expect that they catch nothing.
  for (const Detector& detector : Detectors(kFewer)) EXPECT_EQ(detector.run(), "") << detector.name;
}

}  // namespace
}  // namespace farside::index::sephash
