// What a durable pool has reported survives power cuts, and nothing else is left of them.
#include <gtest/gtest.h>

#include <cstdint>

#include "tests/pool/region/power_cut_run.h"
#include "tests/pool/region/power_cut_scenarios.h"
#include "tests/support/sanitized.h"

namespace farside::pool {
namespace {

TEST(PoolPowerCut, AtAnyMoment_KeepsWhatWasReported_AndLeaksNothing) {
  // Given clients that make and drop tables, some of which die, and a power cut at some verb of theirs.
  // When of all words that were not durable, some survive, and the region is opened again.
  // Expect every table that was reported as made, whole; none that was reported as dropped; and every byte
  // reachable or free, once a client has swept.
  for (uint64_t seed = 1; seed <= 200 / kFewer; ++seed) ASSERT_EQ(RunPowerCuts(seed), "") << "seed " << seed;
}

TEST(PoolPowerCut, OfOneNodeOfSeveral_KeepsWhatWasReported_AndLeaksNothing) {
  // Given the same at two nodes, of which one or the other loses its power while clients go on.
  for (uint64_t seed = 1; seed <= 200 / kFewer; ++seed)
    ASSERT_EQ(RunPowerCutsOfNodes(seed), "") << "seed " << seed;
}

TEST(PoolPowerCut, AfterATableWasOpenedWhoseMakerDied_KeepsIt) {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    ASSERT_EQ(ATableIsOpenedBeforeItsMakerHasMadeItDurable(seed), "") << "seed " << seed;
}

TEST(PoolPowerCut, AfterAPoolOfSeveralNodesWasOpened_KeepsTheirPlaces) {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    ASSERT_EQ(NodesLosePowerWhenTheirPoolWasOpened(seed), "") << "seed " << seed;
}

TEST(PoolPowerCut, OfANodeWhileATableIsMade_KeepsItsRoot) {
  EXPECT_EQ(ATableIsMadeWhileANodeOfItLosesPower(), "");
}

}  // namespace
}  // namespace farside::pool
