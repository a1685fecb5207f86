// The shard table under clients that do not die: which of them meet, and what each knows.
#include "tests/engines/shard/scenarios.h"

#include <gtest/gtest.h>

#include "tests/support/sanitized.h"

namespace farside::index::shard {
namespace {

TEST(ShardScenarios, EachNeedsTheLockOfTheOther_BothPutsSucceed) {
  // Given a resize that is announced, and two units whose buckets are full
  // When each of two clients puts a key that overflows into the other unit
  // Expect that they do not wait for each other
  EXPECT_EQ(EachNeedsTheLockOfTheOther(), "");
}

TEST(ShardScenarios, TwoInsertAKeyWhileAThirdSplits_OnlyOneDoes) {
  // Given a full bucket that is about to be split
  // When two clients insert one key, one of which only knows that the resize was announced, over many seeds
  // Expect that one of them does, and that the key stands once
  EXPECT_EQ(TwoInsertAKeyWhileAThirdSplits(800 / kFewer), "");
}

TEST(ShardScenarios, ReadersMeetASplitOfABucketOfTwoLines_NoneMissesAKeyThatStays) {
  // Given a key in the second line of a bucket, which a split moves to the first
  // When many search it while the bucket is split, and their READs take the lines at different times, over
  // some seeds
  // Expect that all of them find it
  EXPECT_EQ(ReadersMeetASplit(64 / kFewer), "");
}

TEST(ShardScenarios, ResizeOfSeveralVersions_ClientWithTheAnnouncementFindsWhatMovedByTheSecond) {
  // Given a resize that goes several versions at once, and a unit that was split to the last of them
  // When a client that only knows the announcement searches a key that the first of these splits left in the
  // unit
  // Expect that it finds the key
  EXPECT_EQ(LateReaderMeetsSeveralVersions(), "");
}

TEST(ShardScenarios, ReadersMeetAnAnnouncement_TheirDirectoryIsWhole) {
  // Given a client that announces a resize
  // When another one reads the directory for the first time, many times at once and at every step of that,
  // over some seeds
  // Expect that none of them takes a new state together with an old directory
  EXPECT_EQ(ReadersMeetAnAnnouncement(4), "");
}

TEST(ShardScenarios, CachedBlockIsReused_NoOldValueIsRead) {
  // Given a client that has cached where a key is, and a block that was replaced and is reused for the same
  // key
  // When it searches for the key many times at every step of that, on a fabric that samples READs in order,
  // and on one that samples them in any order, over some seeds
  // Expect a value that the key had meanwhile
  EXPECT_EQ(CachedBlockIsReused(16 / kFewer, /*ordered_reads=*/true), "");
  EXPECT_EQ(CachedBlockIsReused(16 / kFewer, /*ordered_reads=*/false), "");
}

TEST(ShardScenarios, ManyOperationsInFlightWhileTheTableGrows_NothingIsLostOrDoubled) {
  // Given two clients with a dozen operations in flight each, and a table that grows under them
  // When they put distinct keys, and insert one key together, over some seeds
  // Expect every key where every client looks for it, once, and one insert applied
  EXPECT_EQ(ManyOperationsInFlight(80 / kFewer, "64"), "");
}

}  // namespace
}  // namespace farside::index::shard
