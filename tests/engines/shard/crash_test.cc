// The shard table under clients that die at exact places: in the middle of splits, resizes and inserts.
#include <gtest/gtest.h>

#include "check/campaign.h"
#include "tests/engines/shard/death_scenarios.h"
#include "tests/support/sanitized.h"

namespace farside::index::shard {
namespace {

TEST(ShardCrash, WriterSweepsWhileItWaitsForALock_WhatItWritesIsNotFreed) {
  // Given one client that died, and a second one that dies with a lock a little later
  // When a writer waits for the lock of the second, and meanwhile sweeps after the first
  // Expect that the block which it then publishes is not free
  EXPECT_EQ(WriterSweepsWhileItWaits(), "");
}

TEST(ShardCrash, OwnerDiesAtEveryVerbOfASplit_OthersFinishIt) {
  // Given four keys in a unit, a resize that counts, a client that knows so, and one that only knows that it
  // was announced
  // When a third one that has to split the unit dies, at every verb and in every way
  // Expect that both others read and write what was acknowledged, that a cursor returns every key once, that
  // nothing is leaked
  EXPECT_EQ(OwnerDiesInASplit({}), "");
}

TEST(ShardCrash, OwnerDiesInASplitOfABucketOfTwoLines_NoEntryIsLostBetweenThem) {
  // Given a bucket with entries in both of its lines, of which some stay and some move
  // When its owner dies, at every verb of the split and in the middle of its WRITEs
  // Expect the same
  EXPECT_EQ(OwnerDiesInASplit({.shape = {{"slots", "16"}, {"overflow_slots", "2"}}, .keys = 14}), "");
}

TEST(ShardCrash, OwnerDiesInASplitWithChainsOfLevel3_NodesAreNeitherLostNorLeaked) {
  // Given a unit with three nodes of level 3
  // When its owner dies, at every verb of the split
  // Expect the same
  EXPECT_EQ(OwnerDiesInASplit({.shape = {{"slots", "1"}, {"overflow_slots", "1"}}, .keys = 20}), "");
}

TEST(ShardCrash, OwnerDiesInTheFirstOfSeveralSplits_OthersDoThemAll) {
  // Given a unit that is three resizes behind
  // When its owner dies, at every verb of all three splits
  // Expect the same
  EXPECT_EQ(OwnerDiesInASplit({.behind = 3}), "");
}

TEST(ShardCrash, OwnerDiesInTheSplitThatRefreshesTags_OthersRefreshThem) {
  // Given a unit of version 8, whose tags have no bit left to split by
  // When its owner dies, at every verb of the split, which READs all blocks
  // Expect the same
  EXPECT_EQ(OwnerDiesInASplit({.shape = {{"slots", "2"}, {"overflow_slots", "1"}}, .version = 8, .keys = 5}),
            "");
}

TEST(ShardCrash, OneSplitsWhileAnotherKnowsOnlyTheAnnouncement_BothWritesCount) {
  // Given a unit that is about to be split, and a client that only knows that this was announced
  // When both put a key in it at once, a third reads, and any of them dies at any verb, over some seeds
  // Expect that every acknowledged put is found where every client looks for it
  EXPECT_EQ(TwoMeetInASplit({{"slots", "1"}, {"overflow_slots", "8"}}, 16 / kFewer), "");
  EXPECT_EQ(TwoMeetInASplit({{"slots", "3"}, {"overflow_slots", "8"}}, 16 / kFewer), "");
}

TEST(ShardCrash, PreparerDiesAtEveryVerb_TheTableGrowsAllTheSame) {
  // Given a table that wants to grow
  // When the client that makes it grow dies: as it takes that on, zeroes the segment, writes the directory,
  // announces it
  // Expect that others carry on from there, that no key is lost, and no byte
  EXPECT_EQ(GrowerDies(Resizing::kAnnounces), "");
}

TEST(ShardCrash, ActivatorDiesAtEveryVerb_TheResizeCountsAllTheSame) {
  // Given a resize that is announced, and a client whose wait for its grace is over
  // When it dies as it makes the resize count
  // Expect that another does
  EXPECT_EQ(GrowerDies(Resizing::kActivates), "");
}

class ShardCarefulCrash : public testing::TestWithParam<CarefulChange> {};
TEST_P(ShardCarefulCrash, WriterDiesWithALock_TheNextTakesItOver) {
  // Given a resize that is announced, so that changes are made under locks
  // When a writer dies at any verb of a change
  // Expect that the next writers of that unit take over, and that the change happened or did not
  EXPECT_EQ(CarefulWriterDies(GetParam()), "");
}
INSTANTIATE_TEST_SUITE_P(Changes, ShardCarefulCrash,
                         testing::Values(CarefulChange::kUpdate, CarefulChange::kAppend,
                                         CarefulChange::kFillHole, CarefulChange::kToLevel2,
                                         CarefulChange::kToLevel3, CarefulChange::kDelete,
                                         CarefulChange::kDeleteFromLevel3));

TEST(ShardCrash, OwnerOfASecondLockIsDead_TheWriterTakesItOver) {
  // Given a resize that is announced, and a client that died with the lock of a unit
  // When a key of another unit overflows into level 2 of that one, so that its writer needs both locks
  // Expect that it does not wait for ever
  EXPECT_EQ(DeadOwnerOfASecondLock(), "");
}

TEST(ShardCrash, EveryVerbOfEveryShortScript_SurvivorsGoOn) {
  // Given scripts of two or three clients, and tables that pass through everything
  // When each of their verbs in turn is the place of each kind of fault
  // Expect every history to be linearizable, and every table to be whole at the end
  std::vector<std::shared_ptr<Engine>> engines;
  std::vector<Engine*> subjects;
  for (const OptionMap& options : (*MakeShardEngine({}))->stress_options()) {
    engines.push_back(*MakeShardEngine(options));
    subjects.push_back(engines.back().get());
  }
  check::CampaignOptions options;
  options.seeds = 8 / kFewer;
  options.crash = true;
  const check::CampaignReport report = check::RunCampaign(check::Subjects(subjects), options);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": "
                                   << report.first_violation->problem;
  EXPECT_GT(report.crash_points, options.seeds * 200);
}

}  // namespace
}  // namespace farside::index::shard
