// The arithmetic of a shard table: where units, tags and segments are.
#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "index/shard/layout.h"

namespace farside::index::shard {
namespace {

constexpr Shape kShapes[] = {{.initial_bits = 0, .slots = 64, .overflow_slots = 8},
                             {.initial_bits = 0, .slots = 1, .overflow_slots = 1},
                             {.initial_bits = 3, .slots = 9, .overflow_slots = 2},
                             {.initial_bits = 10, .slots = 33, .overflow_slots = 8}};

TEST(ShardShape, BucketsHavePowersOfTwoOfLines) {
  // Given some numbers of slots
  // Expect 1, 2, 4 or 8 lines, enough for all slots
  for (uint32_t slots = 1; slots <= 64; ++slots) {
    const Shape shape{.slots = slots};
    EXPECT_TRUE(std::has_single_bit(shape.lines())) << slots;
    EXPECT_GE(shape.lines() * kSlotsPerLine, slots);
    EXPECT_LE(shape.lines(), kMostLines);
  }
  EXPECT_EQ(Shape{.slots = 8}.lines(), 1u);
  EXPECT_EQ(Shape{.slots = 9}.lines(), 2u);
  EXPECT_EQ(Shape{.slots = 17}.lines(), 4u);
  EXPECT_EQ(Shape{.slots = 64}.lines(), 8u);
}

TEST(ShardShape, SegmentsTileTheUnitsOfEveryVersion) {
  // Given tables of some shapes
  // When they are resized a few times
  // Expect that their segments hold every unit exactly once, in order
  for (const Shape& shape : kShapes) {
    for (uint32_t version = 1; version <= 8; ++version) {
      uint64_t units = 0;
      for (size_t segment = 0; segment < shape.segments(version); ++segment) {
        EXPECT_EQ(shape.FirstUnit(segment), units);
        EXPECT_EQ(shape.SegmentOf(units), segment);
        units += shape.SegmentUnits(segment);
        EXPECT_EQ(shape.SegmentOf(units - 1), segment);
      }
      EXPECT_EQ(units, shape.units(version));
      EXPECT_EQ(shape.capacity(version), units * (shape.slots + shape.overflow_slots));
    }
  }
}

TEST(ShardShape, SegmentsHaveRoomForTheirUnitsAndLocks) {
  // Given some shapes
  // Expect that a segment is its units, a bucket and a line each, and its locks in whole lines
  for (const Shape& shape : kShapes) {
    EXPECT_EQ(shape.unit_bytes(), (shape.lines() + 1) * sizeof(Line));
    for (size_t segment = 0; segment < 8; ++segment) {
      const uint64_t locks = shape.SegmentBytes(segment) - shape.SegmentUnits(segment) * shape.unit_bytes();
      EXPECT_GE(locks, shape.SegmentLocks(segment) * sizeof(UnitLock));
      EXPECT_LT(locks, shape.SegmentLocks(segment) * sizeof(UnitLock) + pool::kLine);
      EXPECT_EQ(locks % pool::kLine, 0u);
    }
  }
}

TEST(ShardKeyHash, NumbersOfAKeyAreIndependent) {
  // Given many hashes
  // Expect that their three numbers differ, and that the two choices of level 2 agree in a low bit half of
  // the time
  Random random(1);
  uint64_t same = 0;
  for (int i = 0; i < 10'000; ++i) {
    const KeyHash hash(random.Next());
    EXPECT_NE(hash.number(Candidate::kLevel1), hash.number(Candidate::kFirstChoice));
    EXPECT_NE(hash.number(Candidate::kFirstChoice), hash.number(Candidate::kSecondChoice));
    same += ((hash.number(Candidate::kFirstChoice) ^ hash.number(Candidate::kSecondChoice)) & 1) == 0 ? 1 : 0;
  }
  EXPECT_GT(same, 4'700u);
  EXPECT_LT(same, 5'300u);
}

TEST(ShardTag, SplitsDecideByTheTagAsByTheNumber) {
  // Given numbers, in tables of all versions
  // When a bucket of each version is split
  // Expect that the tag says which entries move, and that those that stay and those that move are told apart
  // by the number
  Random random(2);
  for (const Shape& shape : kShapes) {
    for (int i = 0; i < 200; ++i) {
      const uint64_t number = random.Next();
      for (uint32_t version = 1; version < kMostVersion && shape.initial_bits + version < 48; ++version) {
        const Entry entry = Entry().WithTag(TagOf(shape, number, version));
        const uint64_t old_unit = UnitOf(shape, number, version);
        const uint64_t new_unit = UnitOf(shape, number, version + 1);
        EXPECT_EQ(new_unit, Moves(entry, version) ? old_unit + shape.units(version) : old_unit);
        // Without a READ of the block, unless the window ends.
        if (!EndsWindow(version)) {
          EXPECT_EQ(TagOf(shape, number, version + 1), entry.tag());
        }
      }
    }
  }
  EXPECT_FALSE(EndsWindow(7));
  EXPECT_TRUE(EndsWindow(8));
  EXPECT_TRUE(EndsWindow(16));
}

TEST(ShardTag, AtLeastNineBitsTellTheKeysOfABucketApart) {
  // Given a bucket before the last split of a window
  // Expect that only the bits that earlier splits decided by are the same for all of its keys
  Random random(3);
  const Shape shape;
  std::set<uint64_t> tags;
  for (int i = 0; i < 100'000; ++i) tags.insert(TagOf(shape, random.Next() << 7, 8));
  EXPECT_EQ(tags.size(), 1u << 10);
}

TEST(ShardStateWord, LaterStatesHaveMoreProgress) {
  // Given the states that a table passes through
  // Expect that each is later than the one before, but that preparing is no other client's business
  for (uint32_t version = 1; version < kMostVersion; ++version) {
    const uint32_t steady = StateWord::Steady(version).Progress();
    const uint32_t announced = StateWord::Announced(version, 3).Progress();
    EXPECT_EQ(StateWord::Preparing(version, pool::Owner(1, 1)).Progress(), steady);
    EXPECT_GT(announced, steady);
    EXPECT_GT(StateWord::Steady(version + 1).Progress(), announced);
  }
}

}  // namespace
}  // namespace farside::index::shard
