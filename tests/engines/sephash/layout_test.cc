// The bytes of the sephash table.
#include "index/sephash/layout.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "base/bytes.h"
#include "index/sephash/sephash.h"
#include "tests/support/table_world.h"

namespace farside::index::sephash {
namespace {

// A dump without text, in which "*" stands for lines that repeat the one before them.
std::string Dump(std::span<const std::byte> bytes) {
  constexpr size_t kBytesOfALine = 16;
  constexpr size_t kOffsetColumns = 8;
  std::string dump;
  std::string last;
  bool repeats = false;
  for (size_t at = 0; at < bytes.size(); at += kBytesOfALine) {
    std::string line = HexDump(bytes.subspan(at, kBytesOfALine), at);
    line.resize(line.find("  |"));
    const std::string hex = line.substr(kOffsetColumns);
    if (hex == last && !repeats) dump += "*\n";
    repeats = hex == last;
    if (!repeats) dump += line + "\n";
    last = hex;
  }
  return dump;
}

TEST(SephashLayout, EntryWord) {
  // Given an entry of a block
  // When its word is made
  // Expect each field where the page says, and nothing anywhere else
  const Entry entry = Entry::OfBlock(5, 0xabcde, 0x12340, 128);
  EXPECT_EQ(entry.word(), uint64_t{5} << 61 | uint64_t{0xabcde} << 41 | uint64_t{2} << 38 | 0x12340 / 64);
  EXPECT_EQ(entry.epoch(), 5u);
  EXPECT_EQ(entry.tag(), 0xabcdeu);
  EXPECT_EQ(entry.fp(), 0xabu);
  EXPECT_EQ(entry.offset(), 0x12340u);
  EXPECT_EQ(entry.bytes(), 128u);
  EXPECT_FALSE(entry.is_tombstone());
  EXPECT_FALSE(entry.is_padding());
  EXPECT_EQ(entry.WithEpoch(0).word(), entry.word() & ~(uint64_t{7} << 61));
  EXPECT_EQ(entry.WithTag(1).word() >> 41 & 0xfffff, 1u);
  // A size that does not fit is left to the block's own header.
  EXPECT_EQ(Entry::OfBlock(0, 0, 64, uint64_t{5} * 64).bytes(), 5u * 64);
  EXPECT_EQ(Entry::OfBlock(0, 0, 64, uint64_t{6} * 64).bytes(), 0u);
  EXPECT_EQ(Entry::OfBlock(0, 0, 64, uint64_t{6} * 64).word(), 1u);
  // The last line of the largest node.
  EXPECT_EQ(kMostRegionBytes, uint64_t{1} << 44);
  EXPECT_EQ(Entry::OfBlock(0, 0, kMostRegionBytes - 64, 64).offset(), kMostRegionBytes - 64);
}

TEST(SephashLayout, TombstoneAndPadding) {
  // Given entries that have no value
  // When their words are made
  // Expect sizes that no block has
  const Entry tombstone = Entry::Tombstone(2, 0x12345, 0x4000);
  EXPECT_EQ(tombstone.word(), uint64_t{2} << 61 | uint64_t{0x12345} << 41 | uint64_t{6} << 38 | 0x100);
  EXPECT_TRUE(tombstone.is_tombstone());
  EXPECT_EQ(tombstone.offset(), 0x4000u);
  EXPECT_EQ(tombstone.bytes(), 0u);
  const Entry padding = Entry::Padding(3, 77);
  EXPECT_EQ(padding.word(), uint64_t{3} << 61 | uint64_t{7} << 38 | 77);
  EXPECT_TRUE(padding.is_padding());
  EXPECT_FALSE(padding.is_tombstone());
  EXPECT_NE(padding, Entry::Padding(3, 77 + kEpochs));
}

TEST(SephashLayout, MetaAndDroppedWords) {
  // Given a meta word, and the word of a dropped block
  // When they are made
  // Expect each field where the page says; a MainSegment that is too large for its field has 0 there
  const MetaWord meta(6, 33, 0x40000, 65408);
  EXPECT_EQ(meta.word(), uint64_t{6} << 61 | uint64_t{33} << 55 | uint64_t{1022} << 38 | 0x1000);
  EXPECT_EQ(meta.epoch(), 6u);
  EXPECT_EQ(meta.depth(), 33u);
  EXPECT_EQ(meta.main(), 0x40000u);
  EXPECT_EQ(meta.main_bytes(), 65408u);
  EXPECT_EQ(MetaWord(0, 0, 64, 0x1ffff * 64).main_bytes(), 0x1ffffu * 64);
  EXPECT_EQ(MetaWord(0, 0, 64, 0x20000 * 64).main_bytes(), 0u);
  const DroppedBlock dropped(0x40000, 640);
  EXPECT_EQ(dropped.word(), uint64_t{10} << 38 | 0x1000);
  EXPECT_EQ(dropped.offset(), 0x40000u);
  EXPECT_EQ(dropped.bytes(), 640u);
}

TEST(SephashLayout, BitsOfAHash) {
  // Given the hash of a key
  // When its tag is made for segments of several depths
  // Expect the fingerprints from the highest 16 bits, and the depth bits of the group that the depth is in
  const uint64_t hash = 0xab'cd'00'00'00'00'0f'5a;
  const Shape shape;
  EXPECT_EQ(TagOf(hash, shape, 0), 0xabcdau);
  EXPECT_EQ(TagOf(hash, shape, 3), 0xabcdau);
  EXPECT_EQ(TagOf(hash, shape, 4), 0xabcd5u);
  EXPECT_EQ(TagOf(hash, shape, 11), 0xabcdfu);
  for (uint32_t depth = 0; depth < kMostDepth; ++depth)
    EXPECT_EQ(SplitBit(TagOf(hash, shape, depth), shape, depth), (hash >> depth & 1) != 0) << depth;
  const Shape two{.depth_bits = 2};
  EXPECT_EQ(TagOf(hash, two, 1), 0xabcd2u);
  EXPECT_EQ(TagOf(hash, two, 2), 0xabcd2u);
  EXPECT_EQ(TagOf(hash, two, 4), 0xabcd1u);
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
  Example() : member_(world_, "sephash", MakeSephashEngine, {{"entries", "3"}, {"main", "1"}}) {}

  void Put(const char* key) { member_.Now(member_.Put(key, "v")); }
  void Delete(const char* key) { member_.Now(member_.Delete(key)); }
  // What clients do not wait for has happened.
  void Wait() { member_.Now(member_.Pause(std::chrono::milliseconds(1))); }

  uint64_t root() const { return member_.roots()[0].offset; }
  uint64_t Word(uint64_t offset) const { return LoadU64(world_.memory().data() + offset); }
  uint64_t Part(size_t part) const { return Word(root() + offsetof(Root, parts) + part * sizeof(uint64_t)); }
  std::string Dump(uint64_t offset, size_t bytes) const {
    return sephash::Dump(world_.memory().subspan(offset, bytes));
  }
  std::string DumpMain(uint64_t segment) const {
    const MetaWord meta(Word(segment));
    return Dump(meta.main(), meta.main_bytes());
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
  // The spare, 15 lines; and part 0 of the directory.
  EXPECT_EQ(table.Dump(table.root(), sizeof(Root)),
            "00000000  d0 06 00 00 c0 03 00 00  00 00 00 00 00 00 00 00\n"
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
            "00000000  df 06 00 00 c0 03 00 40  00 00 00 00 00 00 00 00\n"
            "00000010  86 04 00 00 40 14 bf 48  83 04 00 00 80 df d8 5c\n"
            "00000020  85 04 00 00 40 16 88 31  00 00 00 00 00 00 00 00\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n");
  // The second merge: the filter has the fingerprints of d and a; entries b, c and a.
  EXPECT_EQ(table.DumpMain(segment),
            "00000000  02 00 00 00 00 00 00 00  99 54 2e 19 89 58 0e b0\n"
            "00000010  40 20 01 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000020  c0 03 00 00 00 00 00 00  03 00 00 00 00 00 00 00\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
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
            "00000380  84 04 00 00 40 5e eb 0a  85 04 00 00 40 16 88 11\n"
            "00000390  83 04 00 00 40 de d8 1c  00 00 00 00 00 00 00 00\n"
            "000003a0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
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
            "00000000  d0 06 00 00 c0 03 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000040  80 20 01 00 00 00 00 00  00 22 01 00 00 00 00 00\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  const uint64_t segment = table.Word(table.Part(0));
  // Epoch 3, depth 1; all slots are free.
  EXPECT_EQ(table.Dump(segment, 64),
            "00000000  81 03 00 00 c0 03 80 60  00 00 00 00 00 00 00 00\n"
            "00000010  86 04 00 00 40 14 bf 48  83 04 00 00 80 df d8 5c\n"
            "00000020  87 04 00 00 40 f0 bc 5c  00 00 00 00 00 00 00 00\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n");
  // It names the sibling; entries d and e, and the block of a, which was dropped.
  EXPECT_EQ(table.DumpMain(segment),
            "00000000  03 00 00 00 00 00 00 00  5a ca 75 2c 55 9f 49 ba\n"
            "00000010  40 20 01 00 00 00 00 00  40 22 01 00 00 00 00 00\n"
            "00000020  c0 03 00 00 00 00 00 00  02 00 00 00 01 00 00 00\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
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
            "00000380  86 04 00 00 40 14 bf 08  87 04 00 00 40 f0 bc 1c\n"
            "00000390  83 04 00 00 40 00 00 00  00 00 00 00 00 00 00 00\n"
            "000003a0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // The sibling.
  EXPECT_EQ(table.Dump(table.Part(1), 64),
            "00000000  40 22 01 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  const uint64_t sibling = table.Word(table.Part(1));
  // Epoch 1, depth 1, suffix 1; no slot was ever used.
  EXPECT_EQ(table.Dump(sibling, 64),
            "00000000  ee 06 00 00 c0 03 80 20  01 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // Its first merge, which was the split: entries b and c.
  EXPECT_EQ(table.DumpMain(sibling),
            "00000000  01 00 00 00 00 00 00 00  83 6e 3b cc 70 ac 2e d6\n"
            "00000010  40 22 01 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000020  c0 03 00 00 00 00 00 00  02 00 00 00 00 00 00 00\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
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
            "00000380  84 04 00 00 40 5e eb 0a  85 04 00 00 40 16 88 11\n"
            "00000390  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
}

}  // namespace
}  // namespace farside::index::sephash
