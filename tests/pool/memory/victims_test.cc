#include "pool/memory/victims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "pool/memory/victim_row.h"

namespace farside::pool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A chunk of 16 blocks of 256 bytes, all of whose other blocks are free.
SparseChunk WithLive(uint32_t chunk, uint32_t live, uint32_t size_class = 3) {
  return {.chunk = chunk,
          .size_class = size_class,
          .blocks = 16,
          .free = 16 - live,
          .live = live,
          .live_bytes = live * uint64_t{256}};
}

TEST(Victims, OnlyChunksUpToThreeQuartersAreEmptied_AndTheEmptiestFirst) {
  // Given chunks that are full, at three quarters, a little above, and nearly empty, with room for all
  // copies.
  const std::vector<SparseChunk> own = {WithLive(0, 16), WithLive(1, 12), WithLive(2, 13), WithLive(3, 1),
                                        WithLive(4, 14), WithLive(5, 13), WithLive(6, 13), WithLive(7, 13)};
  // Expect the nearly empty one and that at three quarters.
  EXPECT_THAT(ChooseSparsest(own, {}), ElementsAre(3, 1));
  EXPECT_THAT(ChooseSparsest(own, {.chunks = 1}), ElementsAre(3));
  EXPECT_THAT(ChooseSparsest(own, {.blocks = 1}), ElementsAre(3));
}

TEST(Victims, ItsBlocksFitIntoOtherChunksOfTheClass) {
  // Given two half full chunks of a class, and one of another class with much room.
  const std::vector<SparseChunk> own = {WithLive(0, 8), WithLive(1, 8), WithLive(2, 1, /*size_class=*/4)};
  // Expect that one of the two is emptied into the other, and that the third has nowhere to go.
  EXPECT_THAT(ChooseSparsest(own, {}), ElementsAre(0));
  EXPECT_THAT(ChooseSparsest(std::vector{WithLive(0, 8)}, {}), IsEmpty());
  EXPECT_THAT(ChooseSparsest(std::vector{WithLive(0, 8)}, {.any_room = true}), ElementsAre(0));
}

TEST(Victims, ARow_IsWhereTheFewestBytesAreMoved) {
  // Given chunks 1 and 4 free, 0 of another client, 2 and 3 sparse, and 5 with one block.
  const std::vector<bool> is_free = {false, true, false, false, true, false};
  const std::vector<SparseChunk> own = {WithLive(2, 3), WithLive(3, 2), WithLive(5, 1)};
  // Expect the cheapest row of each length that has none but free and own chunks.
  const auto choose = [&](const EvacuationLimits& limits) { return ChooseRun(own, is_free, limits); };
  EXPECT_THAT(choose({.run = 2}), ElementsAre(2));
  EXPECT_THAT(choose({.run = 3}), ElementsAre(1, 2));
  EXPECT_THAT(choose({.run = 5}), IsEmpty());  // nowhere to put the copies
  EXPECT_THAT(choose({.run = 6}), IsEmpty());  // chunk 0 is in the way
  EXPECT_THAT(choose({.run = 3, .blocks = 2}), IsEmpty());
}

TEST(Victims, ARowWithFullChunks_TakesFreeChunksElsewhereForTheCopies) {
  // Given full chunks of one class among nearly empty ones of another, as after large records were deleted
  // and small ones put, and two free chunks.
  constexpr uint32_t kSmall = 3;
  constexpr uint32_t kLarge = 9;
  std::vector<SparseChunk> own;
  std::vector<bool> is_free;
  for (uint32_t chunk = 0; chunk < 12; ++chunk) {
    is_free.push_back(chunk == 1 || chunk == 8);
    if (is_free.back()) continue;
    own.push_back(chunk % 3 == 0 ? WithLive(chunk, 16, kSmall) : WithLive(chunk, 1, kLarge));
  }
  // When a row of four is wanted. Expect none that fits into own chunks, and one of which the only full chunk
  // is moved to a free chunk elsewhere.
  const EvacuationLimits limits{.run = 4};
  EXPECT_THAT(ChooseRun(own, is_free, limits), IsEmpty());
  const VictimRow row = ChooseRunAndClaims(own, is_free, limits);
  ASSERT_THAT(row.claims, testing::SizeIs(1));
  EXPECT_EQ(row.claims[0].size_class, kSmall);
  EXPECT_EQ(row.claims[0].chunk, 1u);
  std::vector<uint32_t> chunks;
  for (const size_t index : row.chosen) chunks.push_back(own[index].chunk);
  EXPECT_THAT(chunks, ElementsAre(9, 10, 11));
  // When the free chunks are other clients'. Expect that no row is possible.
  is_free[1] = is_free[8] = false;
  EXPECT_THAT(ChooseRunAndClaims(own, is_free, limits).chosen, IsEmpty());
}

TEST(Victims, ARowThatIsMostlyFull_IsNotEmptied) {
  // Given a row of chunks of which more than three quarters are in use, or just that, and as many free chunks
  // for the copies. Expect that it is chosen only in the second case.
  const std::vector<bool> is_free = {false, false, false, false, true, false, true, false, true};
  const auto choose = [&is_free](uint32_t live) {
    const std::vector<SparseChunk> own = {WithLive(0, live), WithLive(1, live), WithLive(2, live)};
    return ChooseRunAndClaims(own, is_free, {.run = 3}).chosen;
  };
  EXPECT_THAT(choose(13), IsEmpty());
  EXPECT_THAT(choose(12), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace farside::pool
