// The chime table under others: what a reader, a scan or a later client finds.
#include <gtest/gtest.h>

#include "check/campaign.h"
#include "tests/engines/chime/checker_adapter.h"
#include "tests/engines/chime/merge_scenarios.h"
#include "tests/engines/chime/scenarios.h"
#include "tests/support/sanitized.h"

namespace farside::index::chime {
namespace {

TEST(ChimeScenarios, EntriesMoveWhileTheyAreLookedFor_AllAreFound) {
  // Given a leaf in which a key finds room only if others move
  // When one client inserts it and another looks for all of those, over many seeds
  // Expect that none of them is ever absent
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 1, /*by_scan=*/false), "");
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 2, /*by_scan=*/false), "");
}

TEST(ChimeScenarios, LeafIsSplitWhileKeysAreLookedFor_AllAreFound) {
  // Given a full leaf
  // When one client splits it and another looks for its keys, over many seeds
  // Expect that none of them is ever absent
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 0, /*by_scan=*/false), "");
}

TEST(ChimeScenarios, EntriesMoveAndLeafIsSplitDuringAScan_EachKeyComesOnce) {
  // Given the same
  // When another client scans meanwhile
  // Expect every key, and none of them twice
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 1, /*by_scan=*/true), "");
  EXPECT_EQ(ReadersMeetAMove(200 / kFewer, 0, /*by_scan=*/true), "");
}

TEST(ChimeScenarios, ScanWithNodesOfBefore_MissesNothing) {
  // Given a client that remembers inner nodes, and another that splits many leaves
  // When the first one scans
  // Expect every key, in order
  EXPECT_EQ(ScanWithOldNodes(), "");
}

TEST(ChimeScenarios, ParentHasNoPivot_TheNextClientInsertsIt) {
  // Given a client that died when it had split a leaf, and not yet told the parent
  // When another looks for a key that has moved
  // Expect that a third one is led there at once
  EXPECT_EQ(ParentHasNoPivot(), "");
}

TEST(ChimeScenarios, KeysWithOnePrefixAndOneTag_AreDifferentKeys) { EXPECT_EQ(TwoKeysWithOneTag(), ""); }
TEST(ChimeScenarios, NoKeyAndNoValueIsReserved) { EXPECT_EQ(KeysOfZerosAndOnes(), ""); }
TEST(ChimeScenarios, UpdateOfAnAbsentKey_LeavesNoLock) { EXPECT_EQ(UpdateOfAnAbsentKey(), ""); }
TEST(ChimeScenarios, WhatAClientRemembers_StaysWithinItsBound) { EXPECT_EQ(CacheWithABound(), ""); }

TEST(ChimeScenarios, ALeafGoes_PlacesOfKeysAreForgotten) {
  // Given a client that remembers where it found six keys.
  // When one of them goes with its leaf, and the client has moved on.
  // Expect that it remembers only what it has found since.
  EXPECT_EQ(KnownPlacesAreForgotten(/*inline_keys=*/true), "");
  EXPECT_EQ(KnownPlacesAreForgotten(/*inline_keys=*/false), "");
}

TEST(ChimeScenarios, KeyGoesAndComesBack_ClientThatRemembersItsLeafFindsIt) {
  // Given a client that remembers the leaf of a key
  // When another deletes the key, so that the leaf goes, and puts it back
  // Expect that the first one finds it, by searches and scans
  EXPECT_EQ(KeyGoesAndComesBack(/*inline_keys=*/true, /*reused=*/false), "");
  EXPECT_EQ(KeyGoesAndComesBack(/*inline_keys=*/false, /*reused=*/false), "");
}

TEST(ChimeScenarios, ALeafIsSplitAndGoes_WhatWasSplitAwayIsFound) {
  // Given a client that remembers a leaf as it was before it was split
  // When the leaf has become empty, and a client that merges it dies on the way, anywhere
  // Expect that the client finds what was split away
  for (const size_t nodes : {1, 2}) {
    EXPECT_EQ(ALeafIsSplitAndGoes(/*inline_keys=*/true, nodes), "");
    EXPECT_EQ(ALeafIsSplitAndGoes(/*inline_keys=*/false, nodes), "");
  }
}

TEST(ChimeScenarios, TwoLeavesGo_ClientThatRemembersTheFirstPutsItsKeyBack) {
  // Given a client that remembers a leaf
  // When it goes, a client that merges it dies on the way, anywhere, and the leaf behind it goes too
  // Expect that the client can put the key back
  EXPECT_EQ(TwoLeavesGo(/*inline_keys=*/true), "");
  EXPECT_EQ(TwoLeavesGo(/*inline_keys=*/false), "");
}

TEST(ChimeScenarios, LeafGoesAndIsUsedAgain_ClientThatRemembersItIsNotMisled) {
  // Given the same
  // When the leaf has become the leaf of other keys before the key comes back
  // Expect the same
  EXPECT_EQ(KeyGoesAndComesBack(/*inline_keys=*/true, /*reused=*/true), "");
  EXPECT_EQ(KeyGoesAndComesBack(/*inline_keys=*/false, /*reused=*/true), "");
}

TEST(ChimeScenarios, CursorStandsAtALeafThatGoes_NoKeyIsLeftOut) {
  // Given a cursor in the middle of a table
  // When the leaf that it stands at goes, and is used again
  // Expect every key that was there throughout
  EXPECT_EQ(CursorStandsAtALeafThatGoes(/*inline_keys=*/true), "");
  EXPECT_EQ(CursorStandsAtALeafThatGoes(/*inline_keys=*/false), "");
}

TEST(ChimeScenarios, SeveralOperationsLearnOfAMerge_NoneRemembersWhatIsGone) {
  // Given a client with several operations in flight, which knows nothing of the tree
  // When a leaf goes while they read their way to the leaves, over many seeds
  // Expect that none of them leaves something behind that leads others to the leaf
  EXPECT_EQ(TwoOperationsLearnOfAMerge(400 / kFewer), "");
}

TEST(ChimeScenarios, ManyKeysComeAndGo_NothingIsLeftOfThem) {
  // Given an empty table and three clients, and keys of all zeros and all ones among others
  // When they insert many keys and delete all of them, again and again, each time others; in turn, or at once
  // Expect that the first node of each level is left if they took turns, not much more if they met at locks,
  // and that fsck finds no leak after any round
  EXPECT_EQ(KeysComeAndGo(/*inline_keys=*/true, 1), "");
  EXPECT_EQ(KeysComeAndGo(/*inline_keys=*/false, 1), "");
  EXPECT_EQ(KeysComeAndGo(/*inline_keys=*/true, 2), "");
  EXPECT_EQ(KeysComeAndGo(/*inline_keys=*/false, 2), "");
}

TEST(ChimeScenarios, ClientWaitsForALock_OthersDoNotWaitForItsPin) {
  // Given a client that waits for the lock of one that has fallen asleep
  // When a third one waits for all to move on
  // Expect that the second one does, before it has the lock
  EXPECT_EQ(ClientWaitsForALock(), "");
}

TEST(ChimeScenarios, TableIsDroppedUnderAWaiter_ItGivesUp) {
  // Given a client that waits for a lock
  // When another drops the table
  // Expect that the first one touches it no more
  EXPECT_EQ(TableIsDroppedUnderAWaiter(), "");
}

TEST(ChimeScenarios, KeysGoAsOftenAsTheyCome_HistoriesAreLinearizable) {
  // Given scripts under which leaves come and go, in both key modes, with long separators too
  // When several clients run them, over many seeds, with and without faults by chance
  // Expect every history to be linearizable, and every byte to be free or reachable at the end
  EXPECT_EQ(RunDeleteHeavyWorkload(1, 1600 / kFewer, /*faults=*/false), "");
  EXPECT_EQ(RunDeleteHeavyWorkload(1, 1600 / kFewer, /*faults=*/true), "");
}

TEST(ChimeScenarios, ScansAndInlineKeys_AreLinearizableKeyByKey) {
  // Given the table with keys=inline, of one half and of both, and keys=bytes, asked for keys by Get, by
  // scans, and by Last
  // When clients change and read a few keys, over many seeds, with and without faults by chance
  // Expect every history to be linearizable, and every table to be whole at the end
  const std::vector<std::shared_ptr<Engine>> engines = AllCheckerAdapters();
  std::vector<Engine*> subjects;
  for (const auto& engine : engines) subjects.push_back(engine.get());
  check::CampaignOptions options;
  options.seeds = 1440 / kFewer;
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
