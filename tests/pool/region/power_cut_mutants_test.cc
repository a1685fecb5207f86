// The planted bugs of what must be durable, and of what must be made anew, are caught by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "pool/mutants.h"
#include "pool/region/layout.h"
#include "pool/region/recover.h"
#include "pool/region/superblock.h"
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

// The last word of an extent did not survive a power cut, and the region is opened.
std::string AnExtentLacksAWord() {
  std::vector<std::byte> region(uint64_t{1} << 20);
  const Result<Geometry> geometry = FormatVolatile(region, {.chunk_bytes = 4096, .durable = true}, {1, 0});
  if (!geometry.ok()) return geometry.error().ToString();
  std::byte* const first = region.data() + geometry->chunk_word(0);
  StoreU64(first, ChunkWord(ChunkState::kExtent, 3, Owner()).word());
  StoreU64(first + sizeof(ChunkWord), ChunkWord(ChunkState::kExtentRest, 1, Owner()).word());
  Recover(region, *geometry);
  return ChunkWord(LoadU64(first)) == ChunkWord() ? "" : "it is kept";
}

TEST(PoolPowerCutMutants, WithoutOneNothingIsCaught) {
  EXPECT_EQ(Search(kManySeeds), "");
  EXPECT_EQ(FirstOf(ATableIsOpenedBeforeItsMakerHasMadeItDurable), "");
  EXPECT_EQ(FirstOf(ADropIsSeenBeforeItIsDurable), "");
  EXPECT_EQ(FirstOf(AChunkIsTakenOverBeforeItIsDurable), "");
  EXPECT_EQ(FirstOf(NodesLosePowerWhenTheirPoolWasOpened), "");
  EXPECT_EQ(PowerIsCutWhenARegionWasOpened(), "");
  EXPECT_EQ(AnExtentLacksAWord(), "");
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

TEST(PoolPowerCutMutant, BrokenExtentsKeptAtOpening_IsCaught) {
  const ScopedMutant mutant(kKeepBrokenExtents);
  EXPECT_EQ(AnExtentLacksAWord(), "it is kept");
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
