// The chime table under others: what a reader, a scan or a later client finds.
#include <gtest/gtest.h>

#include "check/campaign.h"
#include "tests/sanitized.h"
#include "tests/simulation/chime_disguise.h"
#include "tests/simulation/chime_scenes.h"

namespace farside::index::chime {
namespace {

TEST(ChimeScenes, EntriesMoveWhileTheyAreLookedFor_AllAreFound) {
  // Given a leaf in which a key finds room only if others move
  // When one client inserts it and another looks for all of those, over many seeds
  // Expect that none of them is ever absent
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 1, /*by_scan=*/false), "");
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 2, /*by_scan=*/false), "");
}

TEST(ChimeScenes, LeafIsSplitWhileKeysAreLookedFor_AllAreFound) {
  // Given a full leaf
  // When one client splits it and another looks for its keys, over many seeds
  // Expect that none of them is ever absent
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 0, /*by_scan=*/false), "");
}

TEST(ChimeScenes, EntriesMoveAndLeafIsSplitDuringAScan_EachKeyComesOnce) {
  // Given the same
  // When another client scans meanwhile
  // Expect every key, and none of them twice
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 1, /*by_scan=*/true), "");
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 0, /*by_scan=*/true), "");
}

TEST(ChimeScenes, ScanWithNodesOfBefore_MissesNothing) {
  // Given a client that remembers inner nodes, and another that splits many leaves
  // When the first one scans
  // Expect every key, in order
  EXPECT_EQ(ScanWithOldNodes(), "");
}

TEST(ChimeScenes, NobodyToldTheParent_WhoeverComesAlongDoes) {
  // Given a client that died when it had split a leaf, and not yet told the parent
  // When another looks for a key that has moved
  // Expect that a third one is led there at once
  EXPECT_EQ(NobodyTellsTheParent(), "");
}

TEST(ChimeScenes, KeysWithOnePrefixAndOneTag_AreDifferentKeys) { EXPECT_EQ(TwoKeysWithOneTag(), ""); }
TEST(ChimeScenes, NoKeyAndNoValueIsReserved) { EXPECT_EQ(KeysOfZerosAndOnes(), ""); }
TEST(ChimeScenes, UpdateOfAnAbsentKey_LeavesNoLock) { EXPECT_EQ(UpdateOfAnAbsentKey(), ""); }
TEST(ChimeScenes, WhatAClientRemembers_StaysWithinItsBound) { EXPECT_EQ(CacheWithABound(), ""); }

TEST(ChimeScenes, ScansAndInlineKeys_AreLinearizableKeyByKey) {
  // Given the table with keys=inline and keys=bytes, asked for keys by Get, by scans, and by Last
  // When clients change and read a few keys, over many seeds, with and without faults by chance
  // Expect every history to be linearizable, and every table to be whole at the end
  const std::vector<std::shared_ptr<Engine>> engines = AllDisguises();
  std::vector<Engine*> subjects;
  for (const auto& engine : engines) subjects.push_back(engine.get());
  check::CampaignOptions options;
  options.seeds = 1120 / kFewer;
  options.crash = true;
  options.sweep = false;
  options.shape = {.clients = 4, .operations = 10, .keys = 6};
  const check::CampaignReport report = check::RunCampaign(check::Subjects(subjects), options);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": "
                                   << report.first_violation->problem;
}

}  // namespace
}  // namespace farside::index::chime
