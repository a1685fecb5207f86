// The shard table under clients that stop for a while, at every point of what they do.
#include "tests/engines/shard/sleep_scenarios.h"

#include <gtest/gtest.h>

namespace farside::index::shard {
namespace {

TEST(ShardSleep, SplitterFallsAsleepAtEveryVerb_WhatMovesIsReadAsItWasChanged) {
  // Given a unit that is being split by a client that falls asleep, before every verb of that in turn
  // When a newcomer that knows the new version changes a key that moves
  // Expect that a client that only knows the announcement reads what the newcomer wrote, and that it stays
  EXPECT_EQ(SplitterFallsAsleep(KeysInOneLine(), Meanwhile::kChangesWhatMoves), "");
  EXPECT_EQ(SplitterFallsAsleep(KeysInTwoLines(), Meanwhile::kChangesWhatMoves), "");
}

TEST(ShardSleep, SplitterFallsAsleepAtEveryVerb_NothingIsWrittenToABucketThatIsHalfSplit) {
  // Given a bucket of two lines that is being split by a client that falls asleep, before every verb of that
  // in turn
  // When a newcomer that knows the new version inserts a key that stays, or changes one
  // Expect that the rest of the split does not overwrite it
  EXPECT_EQ(SplitterFallsAsleep(KeysInTwoLines(), Meanwhile::kInsertsWhatStays), "");
  EXPECT_EQ(SplitterFallsAsleep(KeysInTwoLines(), Meanwhile::kChangesWhatStays), "");
}

TEST(ShardSleep, InserterFallsAsleepAtEveryStep_TheKeyIsInsertedOnce) {
  // Given a bucket that is about to be split, and a client that inserts a key of it and falls asleep at every
  // step in turn
  // When meanwhile another one inserts the key: by an append; or into level 2 if the bucket is full, which a
  // third one splits
  // Expect that one of the inserts is applied, and that the key stands once
  EXPECT_EQ(InserterFallsAsleep(Behind::kHasRoom), "");
  EXPECT_EQ(InserterFallsAsleep(Behind::kIsFullThenSplit), "");
}

TEST(ShardSleep, OwnerOfASecondLockFallsAsleep_ItsWaiterHoldsNoOther) {
  // Given a resize that is announced, and a client that fell asleep with the lock of a unit
  // When the writer of a key that overflows into that unit waits for it
  // Expect that a third one can change the unit of that key before the sleeper wakes up
  EXPECT_EQ(WaiterHoldsNoLock(), "");
}

}  // namespace
}  // namespace farside::index::shard
