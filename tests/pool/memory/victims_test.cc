#include "pool/memory/victims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

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
  EXPECT_THAT(ChooseRun(own, is_free, {.run = 2}), ElementsAre(2));
  EXPECT_THAT(ChooseRun(own, is_free, {.run = 3}), ElementsAre(1, 2));
  EXPECT_THAT(ChooseRun(own, is_free, {.run = 5}), IsEmpty());  // nowhere to put the copies
  EXPECT_THAT(ChooseRun(own, is_free, {.run = 6}), IsEmpty());  // chunk 0 is in the way
  EXPECT_THAT(ChooseRun(own, is_free, {.run = 3, .blocks = 2}), IsEmpty());
}

}  // namespace
}  // namespace farside::pool
