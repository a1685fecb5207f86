#include "pool/memory/size_class.h"

#include <gtest/gtest.h>

#include <vector>

#include "pool/memory/carving.h"

namespace farside::pool {
namespace {

const std::vector<uint64_t> kChunkSizes = {
    1024, 4096, 8192, 16 * 1024, 64 * 1024, 256 * 1024, 1024 * 1024, 2 * 1024 * 1024, 16 * 1024 * 1024};

TEST(SizeClasses, GrowFromOneLineToHalfAChunk) {
  for (uint64_t chunk_bytes : kChunkSizes) {
    const SizeClasses classes(chunk_bytes);
    ASSERT_GT(classes.count(), 0u);
    ASSERT_LT(classes.count(), SizeClasses::kMost);
    EXPECT_EQ(classes.shape(0).block_bytes, 64u);
    EXPECT_LE(classes.largest(), chunk_bytes / 2);
    EXPECT_GE(classes.largest(), chunk_bytes / 2 - 64);
    for (uint32_t i = 1; i < classes.count(); ++i) {
      EXPECT_GT(classes.shape(i).block_bytes, classes.shape(i - 1).block_bytes) << chunk_bytes;
      EXPECT_LE(classes.shape(i).blocks, classes.shape(i - 1).blocks) << chunk_bytes;
    }
  }
}

TEST(SizeClasses, EverySizeGetsTheSmallestClassThatHoldsIt) {
  for (uint64_t chunk_bytes : kChunkSizes) {
    const SizeClasses classes(chunk_bytes);
    const uint64_t step = std::max<uint64_t>(1, classes.largest() / 20'000);
    for (uint64_t bytes = 0; bytes <= classes.largest(); bytes += step) {
      const uint32_t size_class = classes.ClassOf(bytes);
      ASSERT_LT(size_class, classes.count());
      ASSERT_GE(classes.shape(size_class).block_bytes, bytes);
      if (size_class > 0) {
        ASSERT_LT(classes.shape(size_class - 1).block_bytes, std::max<uint64_t>(bytes, 1));
      }
    }
    EXPECT_EQ(classes.ClassOf(classes.largest()), classes.count() - 1);
  }
}

TEST(SizeClasses, LittleIsWasted) {
  // Given chunks of 1 MiB.
  // When blocks of every size are allocated, of which 16 or more fit into a chunk.
  // Expect that at most a fifth of a block is unused, beyond the rounding to lines, and that the bitmap,
  // the padding and the rest of a chunk are at most a sixteenth of it.
  const SizeClasses classes(1024 * 1024);
  for (uint64_t bytes = 64; bytes <= 64 * 1024; bytes += 64) {
    const SizeClasses::Shape& shape = classes.shape(classes.ClassOf(bytes));
    EXPECT_LE((shape.block_bytes - bytes) * 5, shape.block_bytes) << bytes;
    EXPECT_LE((classes.chunk_bytes() - shape.blocks * shape.block_bytes) * 16, classes.chunk_bytes())
        << bytes;
  }
  // Of the large ones, as many fit as if they were cut to measure, or one or two fewer.
  for (uint64_t bytes = 64 * 1024; bytes <= classes.largest(); bytes += 64) {
    const SizeClasses::Shape& shape = classes.shape(classes.ClassOf(bytes));
    const uint64_t to_measure = (classes.chunk_bytes() - 64) / bytes;
    EXPECT_GE(shape.blocks + (to_measure > 8 ? 2 : 0), to_measure) << bytes;
  }
}

TEST(SizeClasses, ShapesAreInsideTheirChunkAndAligned) {
  for (uint64_t chunk_bytes : kChunkSizes) {
    const SizeClasses classes(chunk_bytes);
    for (uint32_t i = 0; i < classes.count(); ++i) {
      const SizeClasses::Shape& shape = classes.shape(i);
      EXPECT_GE(shape.blocks, 2u);
      EXPECT_GE(shape.first_block, shape.bitmap_bytes());
      EXPECT_GE(shape.bitmap_words() * 64, shape.blocks);
      EXPECT_LT(shape.bitmap_words() * 64, shape.blocks + 64);
      EXPECT_LE(shape.first_block + shape.blocks * shape.block_bytes, chunk_bytes);
      EXPECT_EQ(shape.block_bytes % 64, 0u);
      EXPECT_EQ(shape.first_block % 64, 0u);
      uint64_t bits = 0;
      for (uint32_t word = 0; word < shape.bitmap_words(); ++word) {
        bits += static_cast<uint64_t>(std::popcount(shape.word_mask(word)));
      }
      EXPECT_EQ(bits, shape.blocks);
    }
  }
}

TEST(SizeClasses, PowersOfTwoUpToAPageNeverStraddleOne) {
  for (uint64_t chunk_bytes : kChunkSizes) {
    const SizeClasses classes(chunk_bytes);
    for (uint64_t bytes = 64; bytes <= std::min<uint64_t>(4096, classes.largest()); bytes *= 2) {
      const SizeClasses::Shape& shape = classes.shape(classes.ClassOf(bytes));
      // In the smallest chunks, one block fewer would be half of them.
      if (shape.block_bytes != bytes) {
        EXPECT_LT(chunk_bytes / bytes, 4u) << bytes << " of " << chunk_bytes;
        continue;
      }
      EXPECT_EQ(shape.first_block % bytes, 0u) << bytes << " of " << chunk_bytes;
    }
  }
}

TEST(SizeClasses, ExtentsTakeWholeChunks) {
  const SizeClasses classes(1024 * 1024);
  EXPECT_EQ(classes.ChunksOf(1), 1u);
  EXPECT_EQ(classes.ChunksOf(1024 * 1024), 1u);
  EXPECT_EQ(classes.ChunksOf(1024 * 1024 + 1), 2u);
  EXPECT_EQ(classes.ChunksOf(uint64_t{64} * 1024 * 1024 + 64), 65u);
  EXPECT_GT(classes.ChunksOf(~uint64_t{0}), uint64_t{1} << 43);
}

class CarvingTest : public testing::Test {
 protected:
  static Geometry SomeGeometry() {
    Geometry geometry{.client_slots = 16, .table_slots = 4, .chunk_bytes = 4096};
    geometry.region_bytes = geometry.chunk_table() + kPage + 40 * geometry.chunk_bytes;
    return geometry;
  }
  const Geometry geometry_ = SomeGeometry();
  const fabric::NodeId node_{3};
  const Carving carving_{node_, geometry_};
};

TEST_F(CarvingTest, EveryBlockIsFoundAtItsAddressAndNowhereElse) {
  ASSERT_EQ(carving_.chunks(), 40u);
  for (uint32_t size_class = 0; size_class < carving_.classes().count(); ++size_class) {
    const SizeClasses::Shape& shape = carving_.classes().shape(size_class);
    uint32_t found = 0;
    const uint64_t start = geometry_.chunk(7);
    for (uint64_t offset = start; offset < start + 4096; offset += 8) {
      const std::optional<BlockPosition> position =
          carving_.Locate(fabric::FarAddr(node_, offset), shape.block_bytes);
      if (!position.has_value()) continue;
      EXPECT_EQ(position->chunk, 7u);
      EXPECT_EQ(position->size_class, size_class);
      EXPECT_EQ(position->block, found++);
      EXPECT_EQ(carving_.BlockAt(7, size_class, position->block).offset, offset);
    }
    EXPECT_EQ(found, shape.blocks);
  }
}

TEST_F(CarvingTest, NonsenseIsNoBlock) {
  const auto locate = [&](uint64_t offset, uint64_t bytes) {
    return carving_.Locate(fabric::FarAddr(node_, offset), bytes).has_value();
  };
  EXPECT_FALSE(locate(0, 64));
  EXPECT_FALSE(locate(geometry_.chunk_table(), 64));
  EXPECT_FALSE(locate(geometry_.chunk(0), 64)) << "a bitmap is no block";
  EXPECT_TRUE(locate(geometry_.chunk(0) + 64, 64));
  EXPECT_FALSE(locate(geometry_.chunk(0) + 65, 64));
  EXPECT_FALSE(locate(geometry_.chunk(40), 64));
  EXPECT_FALSE(locate(~uint64_t{0} - 63, 64));
  EXPECT_FALSE(carving_.Locate(fabric::FarAddr(fabric::NodeId{2}, geometry_.chunk(0) + 64), 64).has_value());
}

TEST_F(CarvingTest, ExtentsBeginAtAChunkAndEndInTheRegion) {
  const auto locate = [&](uint64_t offset, uint64_t bytes) {
    return carving_.Locate(fabric::FarAddr(node_, offset), bytes);
  };
  ASSERT_TRUE(locate(geometry_.chunk(38), 8192).has_value());
  EXPECT_TRUE(locate(geometry_.chunk(38), 8192)->is_extent());
  EXPECT_EQ(locate(geometry_.chunk(38), 8192)->block, 2u);
  EXPECT_FALSE(locate(geometry_.chunk(39), 8192).has_value());
  EXPECT_FALSE(locate(geometry_.chunk(38) + 64, 4096).has_value());
  EXPECT_FALSE(locate(geometry_.chunk(0), ~uint64_t{0}).has_value());
}

TEST_F(CarvingTest, WordsThatNoClientCanHaveWrittenAreNotSound) {
  const Owner owner(3, 7);
  EXPECT_TRUE(carving_.IsSound(0, ChunkWord()));
  EXPECT_TRUE(carving_.IsSound(0, ChunkWord(ChunkState::kBlocks, 0, owner)));
  EXPECT_TRUE(carving_.IsSound(0, ChunkWord(ChunkState::kBlocks, carving_.classes().count() - 1, Owner())));
  EXPECT_TRUE(carving_.IsSound(38, ChunkWord(ChunkState::kExtent, 2, owner)));
  EXPECT_TRUE(carving_.IsSound(39, ChunkWord(ChunkState::kExtentRest, 1, Owner())));

  EXPECT_FALSE(carving_.IsSound(0, ChunkWord(ChunkState::kFree, 0, owner)));
  EXPECT_FALSE(carving_.IsSound(0, ChunkWord(ChunkState::kBlocks, carving_.classes().count(), owner)));
  EXPECT_FALSE(carving_.IsSound(0, ChunkWord(ChunkState::kBlocks, 0, Owner(16, 1))));
  EXPECT_FALSE(carving_.IsSound(38, ChunkWord(ChunkState::kExtent, 3, owner)));
  EXPECT_FALSE(carving_.IsSound(38, ChunkWord(ChunkState::kExtent, 0, owner)));
  EXPECT_FALSE(carving_.IsSound(2, ChunkWord(ChunkState::kExtentRest, 3, Owner())));
  EXPECT_FALSE(carving_.IsSound(2, ChunkWord(ChunkState::kExtentRest, 1, owner)));
  EXPECT_TRUE(carving_.IsSound(0, ChunkWord(ChunkState::kBlocks, 0, owner, BlockUse::kRecords)));
  EXPECT_FALSE(carving_.IsSound(38, ChunkWord(ChunkState::kExtent, 2, owner, BlockUse::kRecords)));
  EXPECT_FALSE(carving_.IsSound(0, ChunkWord(ChunkState::kFree, 0, Owner(), BlockUse::kRecords)));
  EXPECT_FALSE(carving_.IsSound(0, ChunkWord(ChunkWord::State::Set(0, 9))));
  EXPECT_FALSE(carving_.IsSound(0, ChunkWord(~uint64_t{0})));
}

}  // namespace
}  // namespace farside::pool
