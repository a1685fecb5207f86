#include "pool/memory/chunk.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "base/random.h"
#include "pool/memory/shelf.h"

namespace farside::pool {
namespace {

TEST(BlockSet, BehavesLikeASet) {
  for (uint32_t blocks : {1u, 2u, 63u, 64u, 65u, 4095u, 4096u, 4097u, 16352u}) {
    BlockSet set(blocks);
    std::set<uint32_t> model;
    Random random(blocks);
    for (int i = 0; i < 4000; ++i) {
      const auto block = static_cast<uint32_t>(random.Below(blocks));
      switch (random.Below(4)) {
        case 0:
        case 1: ASSERT_EQ(set.Insert(block), model.insert(block).second); break;
        case 2: ASSERT_EQ(set.Erase(block), model.erase(block) == 1); break;
        default:
          if (model.empty()) break;
          ASSERT_EQ(set.TakeLowest(), *model.begin());
          model.erase(model.begin());
      }
      ASSERT_EQ(set.size(), model.size());
      ASSERT_EQ(set.empty(), model.empty());
      ASSERT_EQ(set.Contains(block), model.count(block) == 1);
    }
    uint64_t bits = 0;
    for (uint64_t word : set.words()) bits += static_cast<uint64_t>(std::popcount(word));
    EXPECT_EQ(bits, model.size());
  }
}

TEST(BlockSet, InsertAllMakesItWholeWhateverItHeld) {
  for (uint32_t blocks : {1u, 64u, 65u, 4096u, 4097u, 16352u}) {
    BlockSet set(blocks);
    set.Insert(blocks - 1);
    set.InsertAll();
    ASSERT_EQ(set.size(), blocks);
    for (uint32_t block = 0; block < blocks; ++block) ASSERT_EQ(set.TakeLowest(), block);
    EXPECT_TRUE(set.empty());
  }
}

class ShelfTest : public testing::Test {
 protected:
  Chunk& AddChunk(uint32_t index, uint32_t free) {
    chunks_.push_back(std::make_unique<Chunk>(index, BlockKind{}, 8));
    for (uint32_t block = 0; block < free; ++block) chunks_.back()->free.Insert(block);
    shelf_.Add(*chunks_.back());
    return *chunks_.back();
  }
  std::vector<std::unique_ptr<Chunk>> chunks_;
  Shelf shelf_;
};

TEST_F(ShelfTest, TheFullestChunkWithAFreeBlockComesFirst) {
  EXPECT_EQ(shelf_.Fullest(), nullptr);
  AddChunk(1, 0);
  EXPECT_EQ(shelf_.Fullest(), nullptr);
  Chunk& empty = AddChunk(2, 8);
  EXPECT_EQ(shelf_.Fullest(), &empty);
  Chunk& half = AddChunk(3, 4);
  Chunk& nearly_full = AddChunk(4, 1);
  EXPECT_EQ(shelf_.Fullest(), &nearly_full);
  EXPECT_TRUE(shelf_.HasPartlyFree());
  shelf_.Take(nearly_full);
  EXPECT_EQ(shelf_.Fullest(), &half);
  for (int i = 0; i < 4; ++i) shelf_.Take(half);
  EXPECT_EQ(shelf_.Fullest(), &empty);
  EXPECT_FALSE(shelf_.HasPartlyFree());
  EXPECT_EQ(shelf_.FirstEmpty(), &empty);
  shelf_.Take(empty);
  EXPECT_EQ(shelf_.FirstEmpty(), nullptr);
}

TEST_F(ShelfTest, ChunksMoveAsTheirBlocksComeAndGo) {
  // Given chunks whose blocks are taken and put back at random.
  // Expect the shelf to hand out from a chunk that has a free block, and to know the empty ones, at any time.
  Random random(7);
  for (uint32_t i = 0; i < 20; ++i) AddChunk(i, static_cast<uint32_t>(random.Below(9)));
  for (int i = 0; i < 20'000; ++i) {
    Chunk& chunk = *chunks_[random.Below(chunks_.size())];
    const auto block = static_cast<uint32_t>(random.Below(8));
    if (random.Chance(1, 2)) {
      const bool was_free = chunk.free.Contains(block);
      ASSERT_EQ(shelf_.Put(chunk, block), !was_free);
    } else if (Chunk* fullest = shelf_.Fullest()) {
      shelf_.Take(*fullest);
    }
    bool any_free = false;
    bool any_empty = false;
    for (const auto& each : chunks_) {
      any_free |= !each->free.empty();
      any_empty |= each->IsEmpty();
    }
    ASSERT_EQ(shelf_.Fullest() != nullptr, any_free);
    ASSERT_EQ(shelf_.FirstEmpty() != nullptr, any_empty);
    if (any_free) {
      ASSERT_FALSE(shelf_.Fullest()->free.empty());
    }
  }
}

TEST_F(ShelfTest, RemovedChunksAreGone) {
  Chunk& first = AddChunk(1, 3);
  Chunk& second = AddChunk(2, 3);
  Chunk& third = AddChunk(3, 0);
  shelf_.Remove(first);
  EXPECT_EQ(shelf_.Fullest(), &second);
  shelf_.Remove(second);
  EXPECT_EQ(shelf_.Fullest(), nullptr);
  ASSERT_EQ(shelf_.chunks().size(), 1u);
  EXPECT_EQ(shelf_.chunks()[0], &third);
  shelf_.Remove(third);
  EXPECT_TRUE(shelf_.chunks().empty());
}

}  // namespace
}  // namespace farside::pool
