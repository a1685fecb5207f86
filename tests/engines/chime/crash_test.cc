// The chime table under clients that die at exact places: in the middle of moves, splits and everything else.
#include <gtest/gtest.h>

#include "check/campaign.h"
#include "tests/engines/chime/checker_adapter.h"
#include "tests/engines/chime/inner_merge_scenarios.h"
#include "tests/engines/chime/merge_scenarios.h"
#include "tests/engines/chime/scenarios.h"
#include "tests/support/sanitized.h"

namespace farside::index::chime {
namespace {

TEST(ChimeCrash, OwnerDiesWhileEntriesMove_NoneIsLostOrThereTwice) {
  // Given a leaf in which a key finds room only if others move
  // When the client that inserts it dies, at every verb and in every way
  // Expect that others read and write what was acknowledged, that a cursor returns each key once, that
  // nothing is leaked
  EXPECT_EQ(InserterDies(/*inline_keys=*/true, 1), "");
  EXPECT_EQ(InserterDies(/*inline_keys=*/true, 2), "");
  EXPECT_EQ(InserterDies(/*inline_keys=*/false, 1), "");
}

TEST(ChimeCrash, OwnerDiesInASplit_OthersFinishIt) {
  // Given a full leaf
  // When the client that splits it dies, at every verb and in every way
  // Expect the same
  EXPECT_EQ(InserterDies(/*inline_keys=*/true, 0), "");
  EXPECT_EQ(InserterDies(/*inline_keys=*/false, 0), "");
}

TEST(ChimeCrash, OwnerDiesInASplitOverTwoMemoryNodes_OthersFinishIt) {
  // Given the same on two memory nodes, so that the new leaf may be on the other one
  // Expect the same
  EXPECT_EQ(InserterDies(/*inline_keys=*/true, 0, 2), "");
  EXPECT_EQ(InserterDies(/*inline_keys=*/false, 0, 2), "");
}

TEST(ChimeCrash, OwnerDiesInAMerge_OthersFinishIt) {
  // Given a leaf for each key, all remembered by others
  // When the client that deletes a key, and so merges its leaf with the one before, dies at every verb and in
  // every way
  // Expect that no client is misled, not even by memory that is swept and used again, and that nothing is
  // leaked
  EXPECT_EQ(DeleterDies(/*inline_keys=*/true), "");
  EXPECT_EQ(DeleterDies(/*inline_keys=*/false), "");
}

TEST(ChimeCrash, OwnerDiesInAMergeOverTwoMemoryNodes_OthersFinishIt) {
  // Given the same on two memory nodes, so that leaves and their parent may be on different ones
  // Expect the same
  EXPECT_EQ(DeleterDies(/*inline_keys=*/true, 2), "");
  EXPECT_EQ(DeleterDies(/*inline_keys=*/false, 2), "");
}

TEST(ChimeCrash, OwnerDiesInAMergeOfInnerNodes_OthersFinishIt) {
  // Given an inner node with two leaves, the first of which is empty or not
  // When the client that deletes the key of the second dies at every verb and in every way
  // Expect that others find and change what was acknowledged, and that nothing is leaked
  EXPECT_EQ(InnerMergerDies(/*inline_keys=*/true, /*first_too=*/false), "");
  EXPECT_EQ(InnerMergerDies(/*inline_keys=*/true, /*first_too=*/true), "");
  EXPECT_EQ(InnerMergerDies(/*inline_keys=*/false, /*first_too=*/true), "");
}

TEST(ChimeCrash, OwnerDiesInAMergeOfInnerNodesOverTwoMemoryNodes_OthersFinishIt) {
  // Given the same on two memory nodes
  // Expect the same
  EXPECT_EQ(InnerMergerDies(/*inline_keys=*/true, /*first_too=*/true, 2), "");
  EXPECT_EQ(InnerMergerDies(/*inline_keys=*/false, /*first_too=*/true, 2), "");
}

TEST(ChimeCrash, EveryVerbOfScriptsThatEmptyLeaves_SurvivorsGoOn) {
  // Given scripts of two clients under which leaves come and go
  // When each of their verbs in turn is the place of each kind of fault
  // Expect every history to be linearizable, and every table to be whole at the end
  uint64_t places = 0;
  EXPECT_EQ(PlayEbbAtEveryVerb(1, kFewer == 1 ? 8 : 1, places), "");
  EXPECT_GT(places, 500u);
  RecordProperty("places", std::to_string(places));
}

TEST(ChimeCrash, EveryVerbOfEveryShortScript_SurvivorsGoOn) {
  // Given scripts of two or three clients, and tables that pass through everything
  // When each of their verbs in turn is the place of each kind of fault
  // Expect every history to be linearizable, and every table to be whole at the end
  std::vector<std::shared_ptr<Engine>> engines = AllCheckerAdapters();
  for (const OptionMap& options : (*MakeChimeEngine({}))->stress_options())
    engines.push_back(*MakeChimeEngine(options));
  std::vector<Engine*> subjects;
  for (const auto& engine : engines) subjects.push_back(engine.get());
  check::CampaignOptions options;
  options.seeds = 32 / kFewer;
  options.crash = true;
  const check::CampaignReport report = check::RunCampaign(check::Subjects(subjects), options);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": "
                                   << report.first_violation->problem;
  EXPECT_GT(report.crash_points, options.seeds * 200);
}

}  // namespace
}  // namespace farside::index::chime
