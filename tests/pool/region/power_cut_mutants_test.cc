// The planted bugs of what must be durable, and of what must be made anew, are caught by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "pool/mutants.h"
#include "tests/pool/region/power_cut_run.h"
#include "tests/pool/region/power_cut_scenarios.h"

namespace farside::pool {
namespace {

constexpr uint64_t kSeeds = 100;

std::string Search() {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const std::string problem = RunPowerCuts(seed);
    if (!problem.empty()) return "seed " + std::to_string(seed) + ": " + problem;
  }
  return "";
}

// The first problem of a scenario in twenty seeds.
std::string FirstOf(std::string (*scenario)(uint64_t)) {
  std::string problem;
  for (uint64_t seed = 1; seed <= 20 && problem.empty(); ++seed) problem = scenario(seed);
  return problem;
}

TEST(PoolPowerCutMutants, WithoutOneNothingIsCaught) { EXPECT_EQ(Search(), ""); }

TEST(PoolPowerCutMutant, ChunkWordNotDurable_IsCaught) {
  const ScopedMutant mutant(kChunkNotDurable);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, CatalogBodyNotDurableBeforeLive_IsCaught) {
  const ScopedMutant mutant(kBodyNotDurable);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, LiveNotDurableBeforeItIsReported_IsCaught) {
  const ScopedMutant mutant(kLiveNotDurable);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, MemoryGivenBackBeforeTheDropIsDurable_IsCaught) {
  const ScopedMutant mutant(kDropNotDurable);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, BitmapsKeptAtOpening_IsCaught) {
  const ScopedMutant mutant(kKeepBitmaps);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, OwnersKeptAtOpening_IsCaught) {
  const ScopedMutant mutant(kKeepOwners);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, ActsOnATableThatMayBeLost_IsCaught) {
  const ScopedMutant mutant(kActOnLost);
  EXPECT_EQ(FirstOf(ATableIsOpenedBeforeItsMakerHasMadeItDurable), "the table is lost");
}

TEST(PoolPowerCutMutant, PlaceNotDurable_IsCaught) {
  const ScopedMutant mutant(kPlaceNotDurable);
  EXPECT_THAT(FirstOf(NodesLosePowerWhenTheirPoolWasOpened), testing::HasSubstr("belongs to no pool"));
}

TEST(PoolPowerCutMutant, SweepWhileATableIsMade_IsCaught) {
  EXPECT_EQ(ATableIsMadeWhileANodeOfItLosesPower(), "");
  const ScopedMutant mutant(kSweepUnderCreator);
  EXPECT_THAT(ATableIsMadeWhileANodeOfItLosesPower(), testing::HasSubstr("free"));
}

}  // namespace
}  // namespace farside::pool
