// Races of the nessie table that chance does not bring about: clients that stop at every step, and what
// others may expect then.
#include "tests/engines/nessie/scenarios.h"

#include <gtest/gtest.h>

#include "tests/engines/nessie/scenes.h"
#include "tests/engines/nessie/stories.h"
#include "tests/support/sanitized.h"

namespace farside::index::nessie {
namespace {

// ---- scenes

class NessieScene : public testing::TestWithParam<Scene> {};
INSTANTIATE_TEST_SUITE_P(Entries, NessieScene, testing::ValuesIn(EntryScenes()), NameOfScene);
INSTANTIATE_TEST_SUITE_P(Migrations, NessieScene, testing::ValuesIn(MigrationScenes()), NameOfScene);
INSTANTIATE_TEST_SUITE_P(Growth, NessieScene, testing::ValuesIn(GrowthScenes()), NameOfScene);

TEST_P(NessieScene, OneClientStopsAtEveryStep_TheOthersGoOn) {
  // Given a table in a certain state, and a few clients that change and read it. When each of them in turn
  // stops at every step, and the others go on. Expect that the history can be explained, and that the table
  // and every byte are in order.
  EXPECT_EQ(GetParam().OneStops(), "");
}

TEST_P(NessieScene, AllAtOnceByChance_TheHistoryCanBeExplained) {
  // Given the same. When all go on at once, and everything is delayed by chance. Expect the same.
  EXPECT_EQ(GetParam().ByChance(50 / kFewer), "");
}

// ---- stops

// The most trips of a read while all others have stopped.
struct Bound {
  Story story;
  uint64_t hit = 0;
  uint64_t miss = 0;
};
std::vector<Bound> Bounds() {
  std::vector<Bound> bounds;
  for (const Story& story : Stories()) bounds.push_back({story, 3, story.miss});
  // A home may be unsplit, but the clients expect it.
  bounds.push_back({UpdateInUnsplitSlot(), 3, 3});
  bounds.push_back({InsertIntoUnsplitSlot(), 3, 3});
  bounds.push_back({UpdateOfLargeItem(), 5, 3});
  return bounds;
}

class NessieStops : public testing::TestWithParam<Bound> {};
INSTANTIATE_TEST_SUITE_P(All, NessieStops, testing::ValuesIn(Bounds()),
                         [](const auto& bound) { return NameOf(bound.param.story.name); });

TEST_P(NessieStops, AllOthersStopAtEveryVerb_ReadsNeverWait) {
  // Given a client in the middle of a change, a migration, a split, a sweep or growth. When it stops at every
  // verb, and another client reads present keys and absent ones. Expect that every read ends at once, after a
  // bounded number of trips.
  Reads reads;
  EXPECT_EQ(ReadsWhileStopped(GetParam().story, reads), "");
  EXPECT_LE(reads.most_of_hits, GetParam().hit);
  EXPECT_LE(reads.most_of_misses, GetParam().miss);
  RecordProperty("most_trips_of_hits", std::to_string(reads.most_of_hits));
  RecordProperty("most_trips_of_misses", std::to_string(reads.most_of_misses));
}

TEST_P(NessieStops, AllOthersStopAtEveryVerb_WritesWaitOnlyForAPendingEntry) {
  // Given the same. When another client puts, deletes and inserts each of the keys. Expect that it ends at
  // once, unless one of the key's own slots has a pending entry.
  Writes writes;
  EXPECT_EQ(WritesWhileStopped(GetParam().story, writes), "");
  EXPECT_GT(writes.went_on, 0u);
  EXPECT_EQ(writes.waited_for_room, 0u);
  RecordProperty("went_on", std::to_string(writes.went_on));
  RecordProperty("waited_at_own_slot", std::to_string(writes.waited_at_own_slot));
}

class NessieTwoStop : public testing::TestWithParam<StoryOfTwo> {};
INSTANTIATE_TEST_SUITE_P(All, NessieTwoStop, testing::ValuesIn(StoriesOfTwo()),
                         [](const auto& two) { return NameOf(two.param.story.name); });

TEST_P(NessieTwoStop, TwoOthersStopAtEveryVerb_ReadsNeverWait) {
  // Given two clients in the middle of changes that meet. When one stops at every verb, then
  // the other at every step, and a third reads present keys and absent ones. Expect that every read ends at
  // once, after three trips at most.
  ReadsOfTwo reads;
  EXPECT_EQ(ReadsWhileTwoStopped(GetParam(), reads), "");
  EXPECT_LE(reads.most_of_hits, 3u);
  EXPECT_LE(reads.most_of_misses, 3u);
  EXPECT_GT(reads.both_pending, 0u);
  RecordProperty("most_trips_of_hits", std::to_string(reads.most_of_hits));
  RecordProperty("most_trips_of_misses", std::to_string(reads.most_of_misses));
  RecordProperty("both_pending", std::to_string(reads.both_pending));
}

TEST(NessieScenarios, WriterOfTheSameKeyHasStopped_AWriterWaits) {
  // Given a client that stops in the middle of an update. When another client changes the same key. Expect
  // that it waits at some of the verbs, so that the test above shows something.
  Writes writes;
  EXPECT_EQ(WritesWhileStopped(UpdateInUnsplitSlot(), writes), "");
  EXPECT_GT(writes.waited_at_own_slot, 2u);
}

// ---- others

TEST(NessieScenarios, CursorHasReadTheLowerSlots_AKeyThatMovesBehindItIsReturned) {
  // Given a cursor that has read the lower slots of a table. When a key moves from a slot that it has not
  // read to one that it has. Expect that the cursor returns the key.
  EXPECT_EQ(CursorMeetsAMigration(), "");
}

TEST(NessieScenarios, CursorMeetsAnError_ItGoesOnWhereItWas) {
  // Given a cursor that has read the lower slots of a table, and a key that has moved behind it. When the
  // client loses its connection, at every verb, and another one goes on with the cursor. Expect that every
  // key is returned.
  EXPECT_EQ(CursorMeetsAnError(), "");
}

TEST(NessieScenarios, KeysMoveToHigherSlotsInsideAReadOfACursor_TheyAreReturned) {
  // Given a cursor whose READ samples many slots, at different times and in any order. When another operation
  // of its client moves keys from some of them to others meanwhile. Expect that the cursor returns the keys.
  EXPECT_EQ(KeysMoveInsideAReadOfACursor(20000 / kFewer), "");
}

TEST(NessieScenarios, TwoRemoveAClaim_OneOfThemRetiresTheCopy) {
  // Given a claim of a client that has stopped. When a client that needs the key stops at every step, and
  // another one, which needs the slot, goes on. Expect that the copy's memory comes back, once.
  EXPECT_EQ(TwoRemoveAClaim(), "");
}

TEST(NessieScenarios, AClaimThatNamesNoItem_IsRemovedAndFreesNothing) {
  // Given a word that is damaged: it is a claim, and names memory of the table that is no item, its root.
  Play play;
  Member& member = play.Enter();
  play.Do(member, Put(K(), "1"));
  play.Set(1, Word::Of(Kind::kClaim, HashOf(K()).tag(), play.world.roots[0].offset, pool::kLine));
  // When a change of a key that may stand there removes the claim.
  const Result<PutOutcome> put = member.Try(member.TableMember::Put(K(), "2"));
  // Expect an error, nothing changed, and that the memory is not given back: every byte is in order.
  ASSERT_FALSE(put.ok());
  EXPECT_EQ(put.error().code(), ErrorCode::kCorrupt) << put.error().ToString();
  EXPECT_TRUE(play.At(1).is(Kind::kEmpty));
  LetMemoryGo(play.world);
  EXPECT_EQ(play.End(), "");
}

TEST(NessieScenarios, EntryIsGoneAtItsCommit_TheWriterLearnsThatNothingWasChanged) {
  // Given a writer with a pending entry. When that is taken back, as that of a dead client, before the writer
  // commits. Expect that the writer is told so: nothing was changed.
  EXPECT_EQ(EntryIsGoneAtItsCommit(), "");
}

TEST(NessieScenarios, KeysComeAndGo_EveryByteIsAccountedFor) {
  // Given two clients that move a key to and fro, and update it. When memory is used again, and one of them
  // dies. Expect that every byte is free or reachable in the end.
  EXPECT_EQ(MemoryComesBack(), "");
}

}  // namespace
}  // namespace farside::index::nessie
