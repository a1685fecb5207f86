// The arithmetic of a nessie table: where slots, segments and the candidates of keys are, what words say, and
// the trails that lead from a slot to its ancestors.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <set>

#include "base/random.h"
#include "index/nessie/layout.h"
#include "index/nessie/trail.h"

namespace farside::index::nessie {
namespace {

constexpr uint32_t kSomeInitialBits[] = {2, 3, 6, 10, 20, 30};

TEST(NessieShape, SegmentsTileTheSlotsOfEveryVersion) {
  // Given tables of some sizes
  // When they grow a few times
  // Expect that their segments hold every slot exactly once, in order, and double the table
  for (const uint32_t bits : kSomeInitialBits) {
    const Shape shape{.initial_bits = bits};
    for (uint32_t version = 1; version <= shape.most_version(); ++version) {
      uint64_t slots = 0;
      for (size_t segment = 0; segment < version; ++segment) {
        EXPECT_EQ(shape.FirstSlot(segment), slots);
        EXPECT_EQ(shape.SegmentOf(slots), segment);
        slots += shape.SegmentSlots(segment);
        EXPECT_EQ(shape.SegmentOf(slots - 1), segment);
        EXPECT_EQ(shape.SegmentBytes(segment) % pool::kLine, 0u);
        EXPECT_GE(shape.SegmentBytes(segment), shape.SegmentSlots(segment) * sizeof(Word));
      }
      EXPECT_EQ(slots, shape.slots(version));
    }
    EXPECT_EQ(shape.slots(1), uint64_t{1} << bits);
    EXPECT_LE(shape.slots(shape.most_version()), uint64_t{1} << kMostSlotBits);
  }
}

TEST(NessieShape, AParentHasOneChildInEachLaterSegment) {
  // Given a table that has grown
  // When the parents of all slots behind the first segment are computed
  // Expect a slot of an earlier segment that lacks the highest bit, and that every slot before a segment is
  // the parent of exactly one of its slots
  const Shape shape{.initial_bits = 3};
  for (uint64_t slot = 0; slot < shape.slots(1); ++slot) EXPECT_FALSE(shape.HasParent(slot));
  for (size_t segment = 1; segment < 8; ++segment) {
    std::set<uint64_t> parents;
    const uint64_t first = shape.FirstSlot(segment);
    for (uint64_t slot = first; slot < first + shape.SegmentSlots(segment); ++slot) {
      ASSERT_TRUE(shape.HasParent(slot));
      const uint64_t parent = Shape::ParentOf(slot);
      EXPECT_EQ(parent | std::bit_floor(slot), slot);
      EXPECT_LT(parent, first);
      EXPECT_TRUE(parents.insert(parent).second);
    }
    EXPECT_EQ(parents.size(), first);
  }
}

TEST(NessieKeyHash, TheSlotsOfAKeyDifferInEveryVersion) {
  // Given many keys, and tables of every initial size
  // When both slots of a key are computed
  // Expect two different ones within the table, however far it has grown; each is that of the version before,
  // or its child
  Random random(1);
  for (uint32_t bits = kLeastInitialBits; bits <= kMostInitialBits; ++bits) {
    const Shape shape{.initial_bits = bits};
    for (int i = 0; i < 300; ++i) {
      const KeyHash key(random.Next());
      EXPECT_LE(key.tag(), Word::Tag::kMax);
      for (uint32_t version = 1; version <= shape.most_version(); ++version) {
        const uint64_t primary = key.SlotOf(shape, Candidate::kPrimary, version);
        const uint64_t secondary = key.SlotOf(shape, Candidate::kSecondary, version);
        ASSERT_NE(primary, secondary) << bits << " bits, version " << version;
        for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
          const uint64_t slot = key.SlotOf(shape, candidate, version);
          ASSERT_LT(slot, shape.slots(version));
          if (version == 1) continue;
          const uint64_t before = key.SlotOf(shape, candidate, version - 1);
          ASSERT_TRUE(slot == before || Shape::ParentOf(slot) == before);
        }
      }
    }
  }
}

TEST(NessieKeyHash, KeysSpreadOverAllPairsOfSlots) {
  // Given the smallest table
  // When many keys are hashed
  // Expect all of its 12 pairs of slots, each about as often: but the neighbours that stand in for a pair of
  // two equal slots
  const Shape shape{.initial_bits = kLeastInitialBits};
  std::map<std::pair<uint64_t, uint64_t>, int> pairs;
  Random random(2);
  constexpr int kKeys = 16'000;
  for (int i = 0; i < kKeys; ++i) {
    const KeyHash key(random.Next());
    ++pairs[{key.SlotOf(shape, Candidate::kPrimary, 1), key.SlotOf(shape, Candidate::kSecondary, 1)}];
  }
  EXPECT_EQ(pairs.size(), 12u);
  for (const auto& [pair, count] : pairs) {
    const int expected = (pair.first ^ pair.second) == 1 ? 2 * kKeys / 16 : kKeys / 16;
    EXPECT_NEAR(count, expected, expected / 5) << pair.first << ", " << pair.second;
  }
}

TEST(NessieWord, ItemsAndTokensKeepTheirFields) {
  // Given words that name an item, and tokens
  // When their fields are read
  // Expect what they were made of; sizes that do not fit are 0; a word as another kind names the same item
  const uint64_t offset = ((uint64_t{1} << 42) - 1) * pool::kLine;
  const Word item = Word::Of(Kind::kPending, 0x7abc, offset, 15 * pool::kLine);
  EXPECT_EQ(item.kind(), Kind::kPending);
  EXPECT_EQ(item.tag(), 0x7abcu);
  EXPECT_EQ(item.offset(), offset);
  EXPECT_EQ(item.bytes(), 15 * pool::kLine);
  EXPECT_EQ(Word::Of(Kind::kLive, 1, 64, 16 * pool::kLine).bytes(), 0u);
  EXPECT_EQ(item.As(Kind::kLive), Word::Of(Kind::kLive, 0x7abc, offset, 15 * pool::kLine));
  EXPECT_TRUE(item.has_item() && item.is_effective() && !item.is_damaged());

  EXPECT_TRUE(Word().is(Kind::kUnsplit)) << "memory that is all zero";
  EXPECT_FALSE(Word().is_effective());
  EXPECT_TRUE(Word::FirstEmpty().is(Kind::kEmpty));
  EXPECT_NE(Word::FirstEmpty(), Word());
  const pool::Owner owner = pool::Owner::FromBits(0xffffffff);
  const Word mark = Word::Token(Kind::kSplitting, owner, ~uint64_t{0});
  EXPECT_EQ(mark.kind(), Kind::kSplitting);
  EXPECT_FALSE(mark.is_effective() || mark.has_item());
  EXPECT_NE(Word::Token(Kind::kEmpty, owner, 1), Word::Token(Kind::kEmpty, owner, 2));
  EXPECT_TRUE(Word(~uint64_t{0}).is_damaged());
}

TEST(NessieItem, WholeLines) {
  // Given sizes of keys and values
  // When the size of their item is computed
  // Expect whole lines, one for 8 and 8 bytes
  EXPECT_EQ(ItemBytes(8, 8), pool::kLine);
  EXPECT_EQ(ItemBytes(8, 9), 2 * pool::kLine);
  for (uint64_t bytes = 0; bytes < 4096; ++bytes) {
    EXPECT_EQ(ItemBytes(8, bytes) % pool::kLine, 0u);
    EXPECT_GE(ItemBytes(8, bytes), sizeof(ItemHeader) + sizeof(pool::BlockHeader) + 8 + bytes);
  }
}

TEST(NessieTrail, LeadsFromAHomeThroughItsAncestors) {
  // Given a table that began with 8 slots and a home in its fourth segment
  // When its trail begins
  // Expect the home and the slots that lack its highest bits, down to the first segment; nothing is read
  const Shape shape{.initial_bits = 3};
  Trail trail;
  trail.Begin(shape, 0b101101);
  ASSERT_EQ(trail.count(), 3u);
  EXPECT_EQ(trail.step(0).slot, 0b101101u);
  EXPECT_EQ(trail.step(1).slot, 0b001101u);
  EXPECT_EQ(trail.step(2).slot, 0b000101u);
  EXPECT_EQ(trail.read(), 0u);
  EXPECT_FALSE(trail.is_settled());
  EXPECT_EQ(trail.Find(0b001101), 1u);
  EXPECT_EQ(trail.Find(0b101), 2u);
  EXPECT_FALSE(trail.Find(0b011101).has_value());
  // A number whose high bits are not set has a short trail in a large table too.
  trail.Begin(shape, 5);
  EXPECT_EQ(trail.count(), 1u);
}

TEST(NessieTrail, TheFirstSlotInUseCounts) {
  // Given a trail of which some steps were read
  // When its effective step is asked for
  // Expect the first one that is neither unsplit nor marked; none before it was read
  const Shape shape{.initial_bits = 3};
  const pool::Owner owner = pool::Owner::FromBits(7);
  Trail trail;
  trail.Begin(shape, 0b101101);
  trail.step(0).word = Word();
  trail.step(1).word = Word::Token(Kind::kSplitting, owner, 1);
  trail.step(2).word = Word::FirstEmpty();
  trail.set_read(2);
  EXPECT_FALSE(trail.is_settled());
  EXPECT_EQ(trail.effective(), 2u);
  trail.set_read(3);
  EXPECT_TRUE(trail.is_settled());
  EXPECT_EQ(trail.effective_step().slot, 0b000101u);
  trail.step(1).word = Word::Of(Kind::kLive, 1, 64, 64);
  EXPECT_EQ(trail.effective(), 1u);
}

TEST(NessieTrail, SameWords_AreThoseOfTheEffectiveSlot) {
  // Given two looks at a trail
  // When they are compared
  // Expect them to be the same if the same slot is in use and has the same word; unsplit and marked slots
  // above it say the same; and looks that did not come to an end never do
  const Shape shape{.initial_bits = 3};
  Trail one;
  one.Begin(shape, 0b001101);
  one.step(0).word = Word();
  one.step(1).word = Word::FirstEmpty();
  one.set_read(2);
  Trail other = one;
  EXPECT_TRUE(SameWords(one, other));
  other.step(0).word = Word::Token(Kind::kSplitting, pool::Owner::FromBits(7), 1);
  EXPECT_TRUE(SameWords(one, other));
  other.step(1).word = Word::Token(Kind::kEmpty, pool::Owner::FromBits(7), 2);
  EXPECT_FALSE(SameWords(one, other));
  other = one;
  other.step(0).word = Word::FirstEmpty();
  EXPECT_FALSE(SameWords(one, other)) << "the slot was put to use";
  other = one;
  one.set_read(1);
  other.set_read(1);
  EXPECT_FALSE(SameWords(one, other));
}

}  // namespace
}  // namespace farside::index::nessie
