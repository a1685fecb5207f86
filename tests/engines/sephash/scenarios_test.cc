// Races of the sephash table that chance does not bring about: clients that sleep, die and remember.
#include "tests/engines/sephash/scenarios.h"

#include <gtest/gtest.h>

#include "tests/engines/sephash/full_pool_scenarios.h"
#include "tests/engines/sephash/split_scenarios.h"
#include "tests/support/sanitized.h"

namespace farside::index::sephash {
namespace {

TEST(SephashScenarios, ChangerFallsAsleepAtEveryStep_OthersMergeSplitAndWrapTheEpoch) {
  // Given a client in the middle of a put, an insert, an update or a delete When it falls asleep, at every
  // step, and others append, merge, split, or merge until the epoch comes again Expect that the history can
  // be explained, and that the table and every byte are in order
  EXPECT_EQ(ChangersFallAsleep(), "");
  EXPECT_EQ(FilterIsTrusted(), "");
}

TEST(SephashScenarios, EpochComesAgain_TheWordOfASlotDoesNot) {
  // Given a client that has seen a free slot, and sleeps until the epoch has come again
  // When the slot has the same key again, or a tombstone of it
  // Expect that its CAS fails: the block that the word names was not used again
  EXPECT_EQ(WordOfASlotComesBack(/*deletes=*/false), "");
  EXPECT_EQ(WordOfASlotComesBack(/*deletes=*/true), "");
}

TEST(SephashScenarios, EpochComesAgain_PaddingDoesNot) {
  // Given a client that is about to append to a slot that has padding
  // When rounds are closed until the epoch has come again, and the slot has padding again
  // Expect that its CAS fails, and that its key is found by the filter when it has tried again
  EXPECT_EQ(PaddingOfASlotComesBack(), "");
}

TEST(SephashScenarios, KeysComeAndGoAndSegmentsAreSplit_WhatSlotsNameIsReachable) {
  // Given two clients that put and delete keys in turn, and a table that merges and splits all the time
  // When every slot of every CurSegment is looked at, after every change
  // Expect that the block which it names is in the table, or in a list of what was dropped
  EXPECT_EQ(SlotsNameWhatCanBeReached(100 / kFewer), "");
}

TEST(SephashScenarios, SeveralInsertAKey_OneSucceeds) {
  // Given three clients that see the same free slot. When all insert one key. Expect that one succeeds.
  EXPECT_EQ(TwoInsertAKey(200 / kFewer), "");
}

TEST(SephashScenarios, OperationsOfOneClientFillALookFromBehind_NothingIsLostOrThereTwice) {
  // Given a client whose READ of several lines is sampled while its other operations append
  // When it finds a free slot before one that is filled
  // Expect that it neither misses the key between them nor replaces what stands behind
  EXPECT_EQ(InsertMeetsOwnPuts(3000 / kFewer), "");
}

TEST(SephashScenarios, MemoryOfAMainSegmentIsUsedAgain_RememberedOnesAreNotMistakenForIt) {
  // Given a client that remembers a MainSegment When the same segment has a later one at the same address:
  // before a search, in the middle of it, and while READs have no order Expect that the search finds what is
  // there
  EXPECT_EQ(RememberedMainIsGone(), "");
  EXPECT_EQ(MainComesBackAtItsAddress(), "");
  EXPECT_EQ(MainComesBackDuringASearch(), "");
  EXPECT_EQ(MainComesBackWhereReadsHaveNoOrder(400 / kFewer), "");
}

TEST(SephashScenarios, LooksOfSeveralLinesMeetMerges_EachIsOfOneRound) {
  // Given CurSegments of two lines, read line by line
  // When others, or operations of the same client, append and merge meanwhile
  // Expect that no look mixes two rounds
  EXPECT_EQ(LooksMeetMerges(200 / kFewer), "");
  EXPECT_EQ(LookMeetsOwnMerges(), "");
  EXPECT_EQ(LookMeetsOwnAppends(), "");
}

TEST(SephashScenarios, SegmentIsSplitAndMergedAgain_AStaleClientAsksTheDirectory) {
  // Given a client that knows the segment as it was
  // When the MainSegment does not name the sibling any more
  // Expect that the directory does
  EXPECT_EQ(SplitSegmentIsMergedAgain(), "");
}

TEST(SephashScenarios, SplitterDiesBeforeTheDirectoryKnows_WalksAndCursorsChangeNothing) {
  // Given a sibling that only a MainSegment names. When a client walks through the table. Expect that it
  // finds everything and leaves the directory as it is.
  EXPECT_EQ(WalkMeetsASiblingThatTheDirectoryDoesNotKnow(), "");
}

TEST(SephashScenarios, DirectoryIsSeveralSplitsBehind_EveryKeyIsFound) {
  // Given clients that know a table of one segment, when it has many. Expect that all of their operations
  // find their way; on one node and on three.
  EXPECT_EQ(DirectoryIsSeveralSplitsBehind(), "");
  EXPECT_EQ(DirectoryIsSeveralSplitsBehind(3), "");
}

TEST(SephashScenarios, SplitsComeBeforeTagsAreRenewed_TheSplitRenewsThem) {
  // Given tags that last for two splits, and segments that merges have not renewed all tags of. When they are
  // split again. Expect that every key is found, and that the table and every byte are in order.
  EXPECT_EQ(SplitsComeBeforeTagsAreRenewed(), "");
}

TEST(SephashScenarios, StaleClientsMeetSplits_HistoriesAreLinearizable) {
  // Given four clients, three of which know nothing of the splits. When all of them change keys at once.
  // Expect that every history can be explained; on one node and on two.
  EXPECT_EQ(StaleClientsMeetSplits(300 / kFewer), "");
  EXPECT_EQ(StaleClientsMeetSplits(100 / kFewer, 2), "");
}

TEST(SephashScenarios, CursorMeetsSplits_NoKeyIsMissed) {
  // Given a cursor on its way. When the table is split before a page, whichever it is. Expect every key that
  // was there throughout.
  EXPECT_EQ(CursorMeetsSplits(), "");
}

TEST(SephashScenarios, PoolIsFull_DeletesGoThrough) {
  // Given a pool without free memory. When two clients delete everything, and when both need spare memory at
  // once. Expect that each has its own, that nothing is damaged or lost, and that all keys go.
  EXPECT_EQ(TwoDeleteInAFullPool(16 / kFewer), "");
  EXPECT_EQ(TwoNeedASpare(24 / kFewer), "");
}

TEST(SephashScenarios, SpareMemoryIsStillRead_NobodyWritesIt) {
  // Given a client in the middle of a search. When the MainSegment that it reads becomes spare memory, and
  // another segment needs some. Expect that the search finds its key, and that the delete goes through.
  EXPECT_EQ(SpareIsStillRead(), "");
}

}  // namespace
}  // namespace farside::index::sephash
