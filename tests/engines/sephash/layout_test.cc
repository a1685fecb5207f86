// The bytes of the sephash table.
#include "index/sephash/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "index/sephash/sephash.h"
#include "index/sephash/walker.h"
#include "tests/support/brief_dump.h"
#include "tests/support/table_world.h"

namespace farside::index::sephash {
namespace {

TEST(SephashLayout, EntryWord) {
  // Given an entry of a block
  // When its word is made
  // Expect each field where the page says, and nothing anywhere else
  const Entry entry = Entry::OfBlock(5, 0x2abcde, 0x12340, 128);
  EXPECT_EQ(entry.word(), uint64_t{5} << 61 | uint64_t{0x2abcde} << 39 | uint64_t{2} << 36 | 0x12340 / 64);
  EXPECT_EQ(entry.epoch(), 5u);
  EXPECT_EQ(entry.tag(), 0x2abcdeu);
  EXPECT_EQ(entry.fp(), 0xaau);
  EXPECT_EQ(entry.offset(), 0x12340u);
  EXPECT_EQ(entry.bytes(), 128u);
  EXPECT_FALSE(entry.is_tombstone());
  EXPECT_FALSE(entry.is_padding());
  EXPECT_EQ(entry.WithEpoch(0).word(), entry.word() & ~(uint64_t{7} << 61));
  EXPECT_EQ(entry.WithTag(1).word() >> 39 & 0x3fffff, 1u);
  // A size that does not fit is left to the block's own header.
  EXPECT_EQ(Entry::OfBlock(0, 0, 64, uint64_t{5} * 64).bytes(), 5u * 64);
  EXPECT_EQ(Entry::OfBlock(0, 0, 64, uint64_t{6} * 64).bytes(), 0u);
  EXPECT_EQ(Entry::OfBlock(0, 0, 64, uint64_t{6} * 64).word(), 1u);
  // The last line of the largest node.
  const uint64_t most = Shape().most_region_bytes();
  EXPECT_EQ(most, uint64_t{1} << 42);
  EXPECT_EQ(Entry::OfBlock(0, 0, most - 64, 64).offset(), most - 64);
  // Numbers of smaller pages reach less far.
  EXPECT_EQ((Shape{.entries = 3, .main = 1}.most_region_bytes()), uint64_t{1} << 38);
}

TEST(SephashLayout, TombstoneAndPadding) {
  // Given entries that have no value
  // When their words are made
  // Expect sizes that no block has
  const Entry tombstone = Entry::Tombstone(2, 0x12345, 0x4000);
  EXPECT_EQ(tombstone.word(), uint64_t{2} << 61 | uint64_t{0x12345} << 39 | uint64_t{6} << 36 | 0x100);
  EXPECT_TRUE(tombstone.is_tombstone());
  EXPECT_EQ(tombstone.offset(), 0x4000u);
  EXPECT_EQ(tombstone.bytes(), 0u);
  const Entry padding = Entry::Padding(3, 77);
  EXPECT_EQ(padding.word(), uint64_t{3} << 61 | uint64_t{7} << 36 | 77);
  EXPECT_TRUE(padding.is_padding());
  EXPECT_FALSE(padding.is_tombstone());
  EXPECT_NE(padding, Entry::Padding(3, 77 + kEpochs));
}

TEST(SephashLayout, MetaAndDroppedWords) {
  // Given a meta word, and the word of a dropped block
  // When they are made
  // Expect each field where the page says
  const MetaWord meta(6, 33, 0x40000, 16);
  EXPECT_EQ(meta.word(), uint64_t{6} << 61 | uint64_t{33} << 55 | uint64_t{16} << 38 | 0x1000);
  EXPECT_EQ(meta.epoch(), 6u);
  EXPECT_EQ(meta.depth(), 33u);
  EXPECT_EQ(meta.main(), 0x40000u);
  EXPECT_EQ(meta.pages(), 16u);
  EXPECT_EQ(MetaWord(0, 0, 64, 0x1ffff).pages(), 0x1ffffu);
  const DroppedBlock dropped(0x40000, 640);
  EXPECT_EQ(dropped.word(), uint64_t{10} << 38 | 0x1000);
  EXPECT_EQ(dropped.offset(), 0x40000u);
  EXPECT_EQ(dropped.bytes(), 640u);
}

TEST(SephashLayout, FoldsOfMetaWordsThatFollowEachOtherDiffer) {
  // Given a meta word
  // When the next merge changes its epoch, with any MainSegment of up to 16 pages at any of many addresses
  // Expect another fold: the slots of the round before are gone (sephash/3)
  const MetaWord meta(3, 7, 0x40000, 16);
  for (uint64_t line = 1; line < 5000; ++line) {
    for (uint64_t pages = 0; pages <= 16; ++pages)
      ASSERT_NE(FoldOf(MetaWord(4, 7, line * pool::kLine, pages)), FoldOf(meta)) << line;
  }
}

// ---- spares ------------------------------------------------------------------------------------------

TEST(SephashLayout, SpareWord) {
  // Given the words of a spare MainSegment that no segment ever had, and of one that was in use
  // When they are made
  // Expect each field where the page says; no stamp of one that was in use is 0
  const SpareWord fresh = SpareWord::New(0x40000);
  EXPECT_EQ(fresh.word(), 0x1000u);
  EXPECT_EQ(fresh.offset(), 0x40000u);
  EXPECT_TRUE(fresh.is_new());
  const SpareWord used = SpareWord::Unlinked(0x40000, 77);
  EXPECT_EQ(used.word(), uint64_t{77} << 38 | 0x1000);
  EXPECT_EQ(used.offset(), 0x40000u);
  EXPECT_FALSE(used.is_new());
  const uint64_t wrap = uint64_t{1} << 26;
  EXPECT_EQ(SpareWord::Unlinked(0x40000, 5 * wrap + 77).word(), used.word());
  EXPECT_EQ(SpareWord::Unlinked(0x40000, wrap).word(), SpareWord::Unlinked(0x40000, 1).word());
}

TEST(SephashLayout, ASpareIsFreeWhenItsStampIsSafe_AlsoWhereStampsWrapAround) {
  // Given spares that were stamped with epochs near the wrap of 26 bits, and far from it
  // When the safe epoch is any one near the stamp
  // Expect that one that was in use is never free before its stamp is safe, and is free soon after
  constexpr uint64_t kWrap = uint64_t{1} << 26;
  constexpr uint64_t kNear = 100;
  for (const uint64_t around : {uint64_t{1000}, kWrap / 2, kWrap, 3 * kWrap, uint64_t{1} << 40}) {
    for (uint64_t epoch = around - 3; epoch <= around + 3; ++epoch) {
      const SpareWord spare = SpareWord::Unlinked(0x40000, epoch);
      for (uint64_t safe = epoch - kNear; safe <= epoch + kNear; ++safe) {
        const bool free = spare.IsFree(safe);
        ASSERT_TRUE(!free || safe > epoch) << epoch << ", safe " << safe;
        ASSERT_TRUE(free || safe <= epoch + 3) << epoch << ", safe " << safe;
      }
      // Much earlier and later ones.
      EXPECT_FALSE(spare.IsFree(epoch - std::min(epoch, kWrap / 4 - 2)));
      EXPECT_TRUE(spare.IsFree(epoch + kWrap / 4 * 3 - 4));
    }
  }
  for (const uint64_t safe : {uint64_t{0}, uint64_t{1}, kWrap / 2, kWrap, kWrap + 1})
    EXPECT_TRUE(SpareWord::New(0x40000).IsFree(safe)) << safe;
}

// ---- hashes ------------------------------------------------------------------------------------------

TEST(SephashLayout, BitsOfAHash) {
  // Given the hash of a key
  // When its tag is made for segments of several depths
  // Expect the fingerprints from the highest 13 bits, the parity of the group, and the depth bits of the
  // group that the depth is in and of the next one
  const uint64_t hash = 0xab'cd'00'00'00'00'0f'5a;
  const Shape shape;
  EXPECT_EQ(TagOf(hash, shape, 0), 0x2af25au);
  EXPECT_EQ(TagOf(hash, shape, 3), 0x2af25au);
  EXPECT_EQ(TagOf(hash, shape, 4), 0x2af3f5u);
  EXPECT_EQ(TagOf(hash, shape, 8), 0x2af20fu);
  EXPECT_EQ(TagOf(hash, shape, 11), 0x2af20fu);
  const Shape two{.depth_bits = 2};
  EXPECT_EQ(TagOf(hash, two, 1), 0x2af20au);
  EXPECT_EQ(TagOf(hash, two, 2), 0x2af306u);
  EXPECT_EQ(TagOf(hash, two, 4), 0x2af205u);
}

TEST(SephashLayout, TagsOfTheGroupBefore_AndTheBitsOfSplits_AreThoseOfTheHash) {
  // Given hashes of keys in segments of every depth, with 1 to 4 depth bits
  // When the tag of the group before is made from the tag and the suffix, and when a split looks at a tag of
  // either group
  // Expect the tag that the hash has in that group, and the bit of the hash that the split divides by
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t hash = random.Next();
    for (uint32_t depth_bits = 1; depth_bits <= kMostDepthBits; ++depth_bits) {
      const Shape shape{.depth_bits = depth_bits};
      for (uint32_t depth = 0; depth <= kMostDepth; ++depth) {
        const uint32_t group = GroupOf(shape, depth);
        ASSERT_TRUE(group <= depth && depth < group + depth_bits && group % depth_bits == 0);
        const Tag tag = TagOf(hash, shape, depth);
        const uint64_t suffix = hash & LowBits(depth);
        const Tag before = TagBefore(tag, suffix, shape, depth);
        ASSERT_EQ(before, TagBefore(tag, hash, shape, depth));
        ASSERT_EQ(before, TagInGroup(hash, shape, group == 0 ? 0 : group - depth_bits)) << depth;
        ASSERT_EQ(FpOf(tag), hash >> 56);
        ASSERT_EQ(FpOf(before), hash >> 56);
        ASSERT_TRUE(IsOfGroup(tag, shape, group));
        ASSERT_EQ(IsOfGroup(before, shape, group), group == 0);
        ASSERT_EQ(SplitBit(tag, shape, depth), (hash >> depth & 1) != 0) << depth;
        ASSERT_EQ(SplitBit(before, shape, depth), (hash >> depth & 1) != 0) << depth;
      }
    }
  }
}

// ---- the directory -----------------------------------------------------------------------------------

TEST(SephashLayout, SuffixesInTheOrderOfTheirReversedBits_EveryHashIsMetOnce) {
  // Given tables whose segments were split at random
  // When a walk goes from each segment to the next suffix
  // Expect that it meets every segment once
  constexpr uint32_t kBits = 10;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    // By the lowest bits of the hash: the depth of the segment.
    std::vector<uint32_t> depths(1 << kBits, 0);
    for (int split = 0; split < 60; ++split) {
      const uint64_t hash = random.Below(depths.size());
      const uint32_t depth = depths[hash];
      if (depth == kBits) continue;
      for (uint64_t other = 0; other < depths.size(); ++other)
        depths[other] += ((other ^ hash) & LowBits(depth)) == 0 && depths[other] == depth ? 1 : 0;
    }
    std::vector<int> met(depths.size(), 0);
    for (std::optional<uint64_t> suffix = 0; suffix.has_value();) {
      ASSERT_LT(*suffix, depths.size()) << seed;
      const uint32_t depth = depths[*suffix];
      ASSERT_EQ(*suffix, *suffix & LowBits(depth)) << "seed " << seed << ": a suffix within a segment";
      for (uint64_t hash = *suffix; hash < met.size(); hash += uint64_t{1} << depth) ++met[hash];
      suffix = NextSuffix(*suffix, depth);
    }
    EXPECT_EQ(met, std::vector<int>(depths.size(), 1)) << seed;
  }
}

TEST(SephashLayout, NextSuffix_ASplitDuringAWalkMovesNothingBehindIt) {
  // Given a walk that has read a segment of any suffix and depth, up to the deepest ones
  // When the segment was split since it was read, or was not
  // Expect the same next suffix; and that the sibling comes next if the walk has read the lower half alone
  EXPECT_EQ(NextSuffix(0, 0), std::nullopt);
  EXPECT_EQ(NextSuffix(0, 1), 1u);
  EXPECT_EQ(NextSuffix(1, 1), std::nullopt);
  EXPECT_EQ(NextSuffix(2, 2), 1u);
  EXPECT_EQ(NextSuffix(3, 3), 7u);
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const auto depth = static_cast<uint32_t>(random.Below(kMostDepth));
    const uint64_t suffix = random.Next() & LowBits(depth);
    const uint64_t sibling = suffix | uint64_t{1} << depth;
    EXPECT_EQ(NextSuffix(suffix, depth + 1), sibling);
    EXPECT_EQ(NextSuffix(sibling, depth + 1), NextSuffix(suffix, depth));
  }
}

TEST(SephashLayout, PartsOfTheDirectory) {
  // Given a table that began with four segments
  // When the places of suffixes in its directory are computed
  // Expect part 0 for those four, and for each further bit a part as large as all before it
  const Shape shape{.initial_bits = 2};
  EXPECT_EQ(shape.PartOf(0), 0u);
  EXPECT_EQ(shape.PartOf(3), 0u);
  EXPECT_EQ(shape.PartEntries(0), 4u);
  for (size_t part = 1; part < 10; ++part) {
    const uint64_t first = uint64_t{2} << part;
    EXPECT_EQ(shape.FirstOfPart(part), first);
    EXPECT_EQ(shape.PartEntries(part), first);
    EXPECT_EQ(shape.PartOf(first), part);
    EXPECT_EQ(shape.PartOf(2 * first - 1), part);
  }
  EXPECT_EQ(shape.PartBytes(0), 64u);
  EXPECT_EQ(shape.PartBytes(2), 64u);
  EXPECT_EQ(shape.PartBytes(3), 128u);
}

// The table of the example in docs/layouts/sephash.md.
class Example {
 public:
  static constexpr Shape kShape{.entries = 3, .main = 1};

  Example() : member_(world_, "sephash", MakeSephashEngine, {{"entries", "3"}, {"main", "1"}}) {}

  void Put(const char* key) { member_.Now(member_.Put(key, "v")); }
  void Delete(const char* key) { member_.Now(member_.Delete(key)); }
  // What clients do not wait for has happened.
  void Wait() { member_.Now(member_.Pause(std::chrono::milliseconds(1))); }

  uint64_t root() const { return member_.roots()[0].offset; }
  uint64_t Word(uint64_t offset) const { return LoadU64(world_.memory().data() + offset); }
  uint64_t Part(size_t part) const { return Word(root() + offsetof(Root, parts) + part * sizeof(uint64_t)); }
  std::string Dump(uint64_t offset, size_t bytes) const {
    return BriefDump(world_.memory().subspan(offset, bytes));
  }
  std::string DumpHead(uint64_t segment) const {
    const MetaWord meta(Word(segment));
    return Dump(meta.main(), kShape.HeadBytes(meta.pages()));
  }
  // The one page of its MainSegment.
  std::string DumpPage(uint64_t segment) const {
    const MetaWord meta(Word(segment));
    if (meta.pages() != 1) return "";
    const auto number = static_cast<uint32_t>(Word(meta.main() + kShape.NumbersOffset(1)));
    return Dump(number * kShape.page_bytes(), kShape.page_bytes());
  }
  const std::string& problem() const { return world_.problem; }

 private:
  TableWorld world_;
  TableMember member_;
};

TEST(SephashLayout, GoldenBytesOfATableThatWasMerged) {
  // Given a table whose CurSegments have three entries
  // When three keys are put, a fourth is put, and the first is deleted
  // Expect exactly these bytes
  Example table;
  for (const char* key : {"a", "b", "c", "d"}) table.Put(key);
  table.Delete("a");
  ASSERT_EQ(table.problem(), "");
  // Two spares that no segment ever had; and part 0 of the directory.
  EXPECT_EQ(table.Dump(table.root(), sizeof(Root)),
            "00000000  d0 06 00 00 00 00 00 00  df 06 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000040  80 20 01 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // One segment.
  EXPECT_EQ(table.Dump(table.Part(0), 64),
            "00000000  40 20 01 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  const uint64_t segment = table.Word(table.Part(0));
  // Epoch 2: d, a tombstone of a; and c, which is of the round before.
  EXPECT_EQ(table.Dump(segment, 64),
            "00000000  ee 06 00 00 40 00 00 40  00 00 00 00 00 00 00 00\n"
            "00000010  84 03 00 00 10 65 bf 48  81 03 00 00 e0 0f d8 5c\n"
            "00000020  83 03 00 00 90 0d 88 31  00 00 00 00 00 00 00 00\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n");
  // The second merge: the filter has the fingerprints of d and a; one page.
  EXPECT_EQ(table.DumpHead(segment),
            "00000000  02 00 00 00 00 00 00 00  27 bd 6b 76 18 e8 71 85\n"
            "00000010  f0 cd af 97 3c 51 4d 72  40 20 01 00 00 00 00 00\n"
            "00000020  00 00 00 00 00 00 00 00  03 00 00 00 00 00 00 00\n"
            "00000030  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000040  02 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000080  02 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000090  00 00 00 00 00 01 00 00  00 00 00 00 00 00 00 00\n"
            "000000a0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "000000c0  02 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "000000d0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000100  02 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000110  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000140  02 00 00 00 00 00 00 00  00 00 00 00 00 00 01 00\n"
            "00000150  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000230  01 00 01 00 01 00 01 00  01 00 01 00 01 00 01 00\n"
            "*\n"
            "00000290  01 00 01 00 01 00 01 00  01 00 02 00 02 00 02 00\n"
            "000002a0  02 00 02 00 02 00 02 00  02 00 02 00 02 00 02 00\n"
            "*\n"
            "00000340  02 00 02 00 02 00 02 00  02 00 02 00 02 00 03 00\n"
            "00000350  03 00 03 00 03 00 03 00  03 00 03 00 03 00 03 00\n"
            "*\n"
            "00000380  a3 04 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000390  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // Entries b, c and a.
  EXPECT_EQ(table.DumpPage(segment),
            "00000000  82 03 00 00 90 1f eb 0a  83 03 00 00 90 0d 88 11\n"
            "00000010  81 03 00 00 90 0f d8 1c  00 00 00 00 00 00 00 00\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
}

TEST(SephashLayout, GoldenBytesOfATableThatWasSplit) {
  // Given the table that was merged
  // When one more key fills the CurSegment, and the MainSegment becomes too large
  // Expect exactly these bytes of both segments
  Example table;
  for (const char* key : {"a", "b", "c", "d"}) table.Put(key);
  table.Delete("a");
  table.Put("e");
  table.Wait();
  ASSERT_EQ(table.problem(), "");
  // There is a part 1.
  EXPECT_EQ(table.Dump(table.root(), sizeof(Root)),
            "00000000  d0 06 00 00 00 00 00 00  df 06 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000040  80 20 01 00 00 00 00 00  00 29 01 00 00 00 00 00\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  const uint64_t segment = table.Word(table.Part(0));
  // Epoch 3, depth 1; all slots are free.
  EXPECT_EQ(table.Dump(segment, 64),
            "00000000  10 03 00 00 40 00 80 60  00 00 00 00 00 00 00 00\n"
            "00000010  84 03 00 00 10 65 bf 48  81 03 00 00 e0 0f d8 5c\n"
            "00000020  85 03 00 00 10 3c bc 5c  00 00 00 00 00 00 00 00\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n");
  // It names the sibling.
  EXPECT_EQ(table.DumpHead(segment),
            "00000000  03 00 00 00 00 00 00 00  9f 46 d4 af 7a b0 96 75\n"
            "00000010  f1 12 37 1b 7f ed c7 17  40 20 01 00 00 00 00 00\n"
            "00000020  40 29 01 00 00 00 00 00  02 00 00 00 01 00 00 00\n"
            "00000030  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000040  03 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000080  03 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000090  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "000000c0  03 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "000000d0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000100  03 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000110  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000140  03 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000150  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000200  00 00 00 00 00 00 00 00  00 00 00 00 01 00 01 00\n"
            "00000210  01 00 01 00 01 00 01 00  01 00 01 00 01 00 01 00\n"
            "*\n"
            "00000340  01 00 01 00 01 00 01 00  01 00 01 00 02 00 02 00\n"
            "00000350  02 00 02 00 02 00 02 00  02 00 02 00 02 00 02 00\n"
            "*\n"
            "00000380  a7 04 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000390  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // Entries d and e, and the block of a, which was dropped.
  EXPECT_EQ(table.DumpPage(segment),
            "00000000  84 03 00 00 10 65 bf 08  85 03 00 00 10 3c bc 1c\n"
            "00000010  81 03 00 00 40 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // The sibling.
  EXPECT_EQ(table.Dump(table.Part(1), 64),
            "00000000  40 29 01 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  const uint64_t sibling = table.Word(table.Part(1));
  // Epoch 1, depth 1, suffix 1; no slot was ever used.
  EXPECT_EQ(table.Dump(sibling, 64),
            "00000000  01 03 00 00 40 00 80 20  01 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // Its first merge, which was the split: it names the old segment, and the meta word that the split wrote.
  EXPECT_EQ(table.DumpHead(sibling),
            "00000000  01 00 00 00 00 00 00 00  8b 3c e5 86 6d 78 ec aa\n"
            "00000010  77 c2 6f 24 b5 71 3c cb  40 29 01 00 00 00 00 00\n"
            "00000020  00 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00\n"
            "00000030  01 00 00 00 50 03 80 60  40 20 01 00 00 00 00 00\n"
            "00000040  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000080  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000090  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "000000c0  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "000000d0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000100  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000110  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000140  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000150  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000230  01 00 01 00 01 00 01 00  01 00 01 00 01 00 01 00\n"
            "*\n"
            "00000290  01 00 01 00 01 00 01 00  01 00 02 00 02 00 02 00\n"
            "000002a0  02 00 02 00 02 00 02 00  02 00 02 00 02 00 02 00\n"
            "*\n"
            "00000380  a6 04 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000390  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // Entries b and c.
  EXPECT_EQ(table.DumpPage(sibling),
            "00000000  82 03 00 00 90 1f eb 0a  83 03 00 00 90 0d 88 11\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
}

}  // namespace
}  // namespace farside::index::sephash
