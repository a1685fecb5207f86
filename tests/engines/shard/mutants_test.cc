// Every planted bug of the shard table is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check/workload.h"
#include "index/shard/mutants.h"
#include "index/shard/shard.h"
#include "pool/mutants.h"
#include "tests/engines/shard/death_scenarios.h"
#include "tests/engines/shard/explored.h"
#include "tests/engines/shard/in_flight.h"
#include "tests/engines/shard/race_scenarios.h"
#include "tests/engines/shard/remembered_scenarios.h"
#include "tests/engines/shard/scenarios.h"
#include "tests/engines/shard/sleep_scenarios.h"
#include "tests/support/detector.h"
#include "tests/support/sanitized.h"
#include "tests/support/script_search.h"

namespace farside::index::shard {
namespace {

using check::WorkloadShape;

std::string Search(const std::vector<OptionMap>& options, uint64_t seeds, const WorkloadShape& shape,
                   uint64_t first_seed = 1, bool sweep = false) {
  std::vector<std::shared_ptr<Engine>> engines;
  for (const OptionMap& some : options) engines.push_back(*MakeShardEngine(some));
  return SearchScripts(engines, {.seeds = seeds, .shape = shape, .first_seed = first_seed, .sweep = sweep});
}

// The quick ones first. Whatever a scenario needs many words for, the searches may find by chance.
std::vector<Detector> Detectors(uint64_t fewer = 1) {
  const std::vector<OptionMap> stress = (*MakeShardEngine({}))->stress_options();
  const auto long_scripts = WorkloadShape{.clients = 4, .operations = 40, .keys = 12};
  const auto many_keys = WorkloadShape{.clients = 4, .operations = 40, .keys = 24};
  return {
      {"evacuations", [=] { return Search(stress, 100 / fewer, kEvacuations); }},
      {"evacuations, and a fault at every verb",
       [=] { return Search(stress, 2, kEvacuations, 1, /*sweep=*/true); }},
      {"short scripts", [=] { return Search(stress, 100 / fewer, {}); }},
      {"many in flight", [=] { return ManyInFlightOften(200 / fewer); }},
      {"two keys with one tag", TwoKeysWithOneTag},
      {"each needs the lock of the other", EachNeedsTheLockOfTheOther},
      {"dead owner of a second lock", DeadOwnerOfASecondLock},
      {"waiter holds no lock", WaiterHoldsNoLock},
      {"readers meet a split", [=] { return ReadersMeetASplit(16 / fewer); }},
      {"splitter falls asleep, what moves is changed",
       [] { return SplitterFallsAsleep(KeysInOneLine(), Meanwhile::kChangesWhatMoves); }},
      {"splitter falls asleep, something is inserted",
       [] { return SplitterFallsAsleep(KeysInTwoLines(), Meanwhile::kInsertsWhatStays); }},
      {"splitter falls asleep, what stays is changed",
       [] { return SplitterFallsAsleep(KeysInTwoLines(), Meanwhile::kChangesWhatStays); }},
      {"inserter falls asleep", [] { return InserterFallsAsleep(Behind::kHasRoom); }},
      {"inserter falls asleep, the bucket is full and split",
       [] { return InserterFallsAsleep(Behind::kIsFullThenSplit); }},
      {"late reader meets several versions", LateReaderMeetsSeveralVersions},
      {"cursor while the table grows", CursorWhileTheTableGrows},
      {"walk while the table grows", WalkWhileTheTableGrows},
      {"readers meet an announcement", [] { return ReadersMeetAnAnnouncement(4); }},
      {"cached block is reused", [=] { return CachedBlockIsReused(16 / fewer, /*ordered_reads=*/true); }},
      {"cached block is reused, READs have no order",
       [=] { return CachedBlockIsReused(16 / fewer, /*ordered_reads=*/false); }},
      {"remembered word names another key",
       [] { return RememberedWordNamesAnotherKey(Remembered::kLongAgo); }},
      {"remembered word names another key, in grace",
       [] { return RememberedWordNamesAnotherKey(Remembered::kDuringGrace); }},
      {"remembered entry is replaced", RememberedEntryIsReplaced},
      {"remembered unit is split, announced", [] { return RememberedUnitIsSplit(Meets::kAnnouncement); }},
      {"remembered unit is split", [] { return RememberedUnitIsSplit(Meets::kNewVersion); }},
      {"put meets a counter", [] { return PutMeetsARival(Against::kIncrement, /*remembers=*/false); }},
      {"put meets an overflow", [] { return PutMeetsARival(Against::kOverflow, /*remembers=*/false); }},
      {"put meets a put that it has not seen",
       [] { return PutMeetsARival(Against::kPut, /*remembers=*/true); }},
      // Around a seed that has shown something once.
      {"long scripts that met level 2 on the move", [=] { return Search(stress, 16, long_scripts, 345); }},
      {"many operations in flight", [=] { return ManyOperationsInFlight(64 / fewer, "0"); }},
      {"many operations in flight, resizes of several versions",
       [=] { return ManyOperationsInFlight(64 / fewer, "64"); }},
      {"owner dies in a split of two lines",
       [] {
         return OwnerDiesInASplit({.shape = {{"slots", "16"}, {"overflow_slots", "2"}}, .keys = 14});
       }},
      {"key is inserted before its unit is split",
       [=] { return KeyIsInsertedBeforeItsUnitIsSplit(200 / fewer); }},
      {"line is split while it is filled", [=] { return LineIsSplitWhileItIsFilled(64 / fewer); }},
      {"directory is read while a resize is announced",
       [=] { return DirectoryIsReadWhileAResizeIsAnnounced(400 / fewer); }},
      // Around a seed in which a client waits for a dead client's lock while others drop the table.
      {"every death while a table is dropped", [=] { return Search(stress, 1, {}, 380, /*sweep=*/true); }},
      {"links",
       [=] {
         return Search({{{"slots", "1"}, {"overflow_slots", "8"}, {"max_load", "0.3"}, {"burst", "0"}}},
                       100 / fewer, long_scripts);
       }},
      {"owner dies in a split", [] { return OwnerDiesInASplit({}); }},
      {"writer dies on its way to level 2", [] { return CarefulWriterDies(CarefulChange::kToLevel2); }},
      {"two meet in a split",
       [=] {
         return TwoMeetInASplit({{"slots", "1"}, {"overflow_slots", "8"}}, 16 / fewer);
       }},
      {"preparer dies", [] { return GrowerDies(Resizing::kAnnounces); }},
      {"two insert a key while a third splits", [=] { return TwoInsertAKeyWhileAThirdSplits(800 / fewer); }},
      {"more evacuations", [=] { return Search(stress, 800 / fewer, kEvacuations, 101); }},
      {"long scripts", [=] { return Search(stress, 200 / fewer, long_scripts); }},
      {"buckets of two lines",
       [=] {
         return Search({{{"slots", "16"}, {"overflow_slots", "1"}, {"max_load", "0.6"}, {"burst", "0"}}},
                       200 / fewer, many_keys);
       }},
      {"resizes of several versions",
       [=] {
         const std::vector<OptionMap> options = {
             {{"slots", "1"}, {"overflow_slots", "8"}, {"max_load", "0.3"}},
             {{"slots", "16"}, {"overflow_slots", "1"}, {"max_load", "0.6"}}};
         return Search(options, 200 / fewer, many_keys);
       }},
  };
}

class ShardMutant : public testing::TestWithParam<MutantName> {};

TEST_P(ShardMutant, IsCaught) {
  // Given the shard table with one planted bug.
  // When the searches and scenarios run, one after the other.
  // Expect that one of them catches it.
  ExpectCaught(GetParam(), Detectors());
}

INSTANTIATE_TEST_SUITE_P(All, ShardMutant, testing::ValuesIn(kAllMutants), NameOfBug);
// A rule that the pool and the kit keep for every engine. The tests of the pool catch pool::kReleaseInGrace.
INSTANTIATE_TEST_SUITE_P(Evacuation, ShardMutant, testing::Values(pool::kHandsOutAndCopiesEarly), NameOfBug);

TEST(ShardMutants, ChangesOfAnyAgeAreCaughtByExploration) {
  // Given a client that changes an entry without a look, however long ago it has seen it
  // When all interleavings with a client that uses its block again are explored
  // Expect that one shows that another key is replaced
  for (const Call& change : {Call::Update("k0", "1"), Call::Delete("k0")}) {
    ExpectCaught(kRememberedOfAnyAge,
                 {{"exploration", [change] { return ProblemOf(ExploreReusedBlock(change)); }}});
  }
}

TEST(ShardMutants, YieldsAreCaughtByExploration) {
  // Given puts that yield to any change, or though they have only remembered what was replaced
  // When all interleavings of two puts and another change are explored
  // Expect that one shows that a put is lost
  ExpectCaught(kYieldsToAny,
               {{"beside a counter",
                 [] { return ProblemOf(ExplorePutsThatLose(Call::Increment("k"), /*remember=*/false)); }}});
  ExpectCaught(kYieldsOnMemory,
               {{"beside a counter",
                 [] { return ProblemOf(ExplorePutsThatLose(Call::Increment("k"), /*remember=*/true)); }}});
}

TEST(ShardMutants, WithoutOneNothingIsCaught) {
  // Given the same build with no bug switched on.
  // When the searches and scenarios that catch the mutants run.
  // Expect that they catch nothing.
  for (const Detector& detector : Detectors(kFewer)) EXPECT_EQ(detector.run(), "") << detector.name;
}

}  // namespace
}  // namespace farside::index::shard
