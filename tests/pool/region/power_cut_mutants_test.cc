// The planted bugs of what must be durable, and of what must be made anew, are caught by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "pool/mutants.h"
#include "tests/pool/region/format_cuts.h"
#include "tests/pool/region/power_cut_run.h"
#include "tests/pool/region/power_cut_scenarios.h"

namespace farside::pool {
namespace {

constexpr uint64_t kSeeds = 100;
constexpr uint64_t kManySeeds = 300;

std::string Search(uint64_t seeds = kSeeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
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

TEST(PoolPowerCutMutants, WithoutOneNothingIsCaught) {
  EXPECT_EQ(Search(kManySeeds), "");
  EXPECT_EQ(FirstOf(ATableIsOpenedBeforeItsMakerHasMadeItDurable), "");
  EXPECT_EQ(FirstOf(ADropIsSeenBeforeItIsDurable), "");
  EXPECT_EQ(FirstOf(AChunkIsTakenOverBeforeItIsDurable), "");
  EXPECT_EQ(FirstOf(NodesLosePowerWhenTheirPoolWasOpened), "");
  EXPECT_EQ(PowerIsCutWhenARegionWasOpened(), "");
  EXPECT_EQ(FormatUnderPowerCuts(UsedPool(), true), "");
}

TEST(PoolPowerCutMutant, ChunkWordNotDurable_IsCaught) {
  const ScopedMutant mutant(kChunkNotDurable);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, WordOfAChunkThatWasTakenOverNotDurable_IsCaught) {
  const ScopedMutant mutant(kTakenNotDurable);
  EXPECT_EQ(FirstOf(AChunkIsTakenOverBeforeItIsDurable), "a block stands in a free chunk");
}

TEST(PoolPowerCutMutant, WordsOfAnExtentNotDurable_IsCaught) {
  const ScopedMutant mutant(kExtentNotDurable);
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

TEST(PoolPowerCutMutant, HalfMadeTablesKeptAtOpening_IsCaught) {
  const ScopedMutant mutant(kKeepHalfMade);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, LostRestsKeptAtOpening_IsCaught) {
  const ScopedMutant mutant(kKeepLostRests);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, RegistryKeptAtOpening_IsCaught) {
  const ScopedMutant mutant(kKeepRegistry);
  EXPECT_NE(Search(), "");
}

TEST(PoolPowerCutMutant, LockKeptAtOpening_IsCaught) {
  const ScopedMutant mutant(kKeepLock);
  EXPECT_NE(Search(kManySeeds), "");
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

TEST(PoolPowerCutMutant, ActsOnADropThatMayBeLost_IsCaught) {
  const ScopedMutant mutant(kActOnLostDrop);
  EXPECT_EQ(FirstOf(ADropIsSeenBeforeItIsDurable), "the table is there again");
}

TEST(PoolPowerCutMutant, OpeningNotDurable_IsCaught) {
  const ScopedMutant mutant(kOpeningNotDurable);
  EXPECT_EQ(PowerIsCutWhenARegionWasOpened(), "what was found is lost");
}

TEST(PoolPowerCutMutant, StepsOfAPoolThatIsMadeLeftOut_AreCaught) {
  for (const MutantName& bug : {kMagicKept, kMagicNotLast, kSuperblockNotDurable, kZerosNotDurable}) {
    const ScopedMutant mutant(bug);
    EXPECT_NE(FormatUnderPowerCuts(UsedPool(), true), "") << bug.text;
  }
}

TEST(PoolPowerCutMutant, IdentityNotDurable_IsCaught) {
  const ScopedMutant mutant(kIdentityNotDurable);
  EXPECT_THAT(FirstOf(NodesLosePowerWhenTheirPoolWasOpened), testing::HasSubstr("belongs to no pool"));
}

TEST(PoolPowerCutMutant, SweepWhileATableIsMade_IsCaught) {
  EXPECT_EQ(ATableIsMadeWhileANodeOfItLosesPower(), "");
  const ScopedMutant mutant(kSweepUnderCreator);
  EXPECT_THAT(ATableIsMadeWhileANodeOfItLosesPower(), testing::HasSubstr("free"));
}

}  // namespace
}  // namespace farside::pool
