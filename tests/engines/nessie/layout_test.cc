// The bytes of the nessie table.
#include "index/nessie/layout.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "index/nessie/nessie.h"
#include "tests/support/brief_dump.h"
#include "tests/support/table_world.h"

namespace farside::index::nessie {
namespace {

// ---- words -------------------------------------------------------------------------------------------

TEST(NessieLayout, WordOfAnItem) {
  // Given an item of two lines
  // When its word is made
  // Expect each field where the page says, and nothing anywhere else
  const Word word = Word::Of(Kind::kLive, 0x1abc, 0x12340, 128);
  EXPECT_EQ(word.word(), uint64_t{3} << 61 | uint64_t{0x1abc} << 46 | uint64_t{2} << 42 | 0x12340 / 64);
  EXPECT_EQ(word.kind(), Kind::kLive);
  EXPECT_EQ(word.tag(), 0x1abcu);
  EXPECT_EQ(word.offset(), 0x12340u);
  EXPECT_EQ(word.bytes(), 128u);
  EXPECT_TRUE(word.has_item());
  EXPECT_TRUE(word.is_effective());
  // Pending, live and claim are the same word but for the kind.
  EXPECT_EQ(word.As(Kind::kPending).word(), (word.word() & ~(uint64_t{7} << 61)) | uint64_t{2} << 61);
  EXPECT_EQ(word.As(Kind::kClaim).word(), (word.word() & ~(uint64_t{7} << 61)) | uint64_t{4} << 61);
  EXPECT_EQ(word.As(Kind::kPending).As(Kind::kLive), word);
  // A size that does not fit is left to the item's own header.
  EXPECT_EQ(Word::Of(Kind::kLive, 0, 64, uint64_t{15} * 64).bytes(), 15u * 64);
  EXPECT_EQ(Word::Of(Kind::kLive, 0, 64, uint64_t{16} * 64).bytes(), 0u);
  EXPECT_EQ(Word::Of(Kind::kLive, 0, 64, uint64_t{16} * 64).word(), uint64_t{3} << 61 | 1);
  // The last line of the largest region.
  const uint64_t most = uint64_t{1} << 48;
  EXPECT_EQ(Word::Of(Kind::kLive, 0, most - 64, 64).offset(), most - 64);
}

TEST(NessieLayout, WordWithoutAnItem) {
  // Given words of slots that have no item
  // When they are made
  // Expect each field where the page says; zero is the word of a slot that is not in use
  const pool::Owner owner(3, 5);
  const Word empty = Word::Token(Kind::kEmpty, owner, 77);
  EXPECT_EQ(empty.word(), uint64_t{1} << 61 | uint64_t{owner.bits()} << 29 | 77);
  EXPECT_TRUE(empty.is_effective());
  EXPECT_FALSE(empty.has_item());
  const Word mark = Word::Token(Kind::kSplitting, owner, 78);
  EXPECT_EQ(mark.word(), uint64_t{5} << 61 | uint64_t{owner.bits()} << 29 | 78);
  EXPECT_FALSE(mark.is_effective());
  EXPECT_FALSE(mark.has_item());
  EXPECT_EQ(Word::FirstEmpty().word(), uint64_t{1} << 61);
  EXPECT_TRUE(Word().is(Kind::kUnsplit));
  EXPECT_FALSE(Word().is_effective());
  // Counts have 29 bits.
  EXPECT_EQ(Word::Token(Kind::kEmpty, owner, (uint64_t{1} << 29) + 77), empty);
  // Two kinds are left over.
  EXPECT_FALSE(mark.is_damaged());
  EXPECT_TRUE(Word(uint64_t{6} << 61).is_damaged());
  EXPECT_TRUE(Word(uint64_t{7} << 61).is_damaged());
}

TEST(NessieLayout, SizesOfItems) {
  // Given keys and values of several sizes
  // When the bytes of their items are computed
  // Expect 48 bytes beside the key and the value, in whole lines
  EXPECT_EQ(ItemBytes(8, 8), 64u);
  EXPECT_EQ(ItemBytes(8, 9), 128u);
  EXPECT_EQ(ItemBytes(kMostKeyOfTombstone, 0), 64u);
  EXPECT_EQ(ItemBytes(kMostKeyOfTombstone + 1, 0), 128u);
  EXPECT_EQ(ItemBytes(12, 900), 960u);
}

// ---- places ------------------------------------------------------------------------------------------

TEST(NessieLayout, SegmentsAndParents) {
  // Given a table that began with four slots
  // When the places of its slots are computed
  // Expect segment 0 for those four, and for each further version a segment as large as all before it; a
  // parent is the slot without the highest bit
  const Shape shape{.initial_bits = 2};
  EXPECT_EQ(shape.slots(1), 4u);
  EXPECT_EQ(shape.slots(3), 16u);
  EXPECT_EQ(shape.SegmentOf(0), 0u);
  EXPECT_EQ(shape.SegmentOf(3), 0u);
  EXPECT_EQ(shape.SegmentSlots(0), 4u);
  for (size_t segment = 1; segment < 10; ++segment) {
    const uint64_t first = uint64_t{2} << segment;
    EXPECT_EQ(shape.FirstSlot(segment), first);
    EXPECT_EQ(shape.SegmentSlots(segment), first);
    EXPECT_EQ(shape.SegmentOf(first), segment);
    EXPECT_EQ(shape.SegmentOf(2 * first - 1), segment);
  }
  EXPECT_EQ(shape.SegmentBytes(0), 64u);
  EXPECT_EQ(shape.SegmentBytes(2), 64u);
  EXPECT_EQ(shape.SegmentBytes(3), 128u);
  EXPECT_FALSE(shape.HasParent(3));
  EXPECT_TRUE(shape.HasParent(4));
  EXPECT_EQ(Shape::ParentOf(4), 0u);
  EXPECT_EQ(Shape::ParentOf(13), 5u);
  EXPECT_EQ(Shape::ParentOf(5), 1u);
  // At most 2^39 slots.
  EXPECT_EQ(shape.most_version(), 38u);
  EXPECT_EQ(Shape{.initial_bits = 30}.most_version(), 10u);
}

TEST(NessieLayout, TheTwoSlotsOfAKeyDiffer_AndParentsAreSlotsOfEarlierVersions) {
  // Given hashes of keys, and tables of several sizes
  // When their slots are computed in every version
  // Expect two that differ in the bits that the table began with; and that a slot of a version is the slot
  // of the version before, or has it as its parent
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const KeyHash hash(random.Next());
    for (const uint32_t bits : {kLeastInitialBits, 3u, 6u, kMostInitialBits}) {
      const Shape shape{.initial_bits = bits};
      for (uint32_t version = 1; version <= shape.most_version(); ++version) {
        const uint64_t primary = hash.SlotOf(shape, Candidate::kPrimary, version);
        const uint64_t secondary = hash.SlotOf(shape, Candidate::kSecondary, version);
        ASSERT_LT(primary, shape.slots(version));
        ASSERT_NE((primary ^ secondary) & (shape.slots(1) - 1), 0u);
        if (version == 1) continue;
        for (const Candidate candidate : {Candidate::kPrimary, Candidate::kSecondary}) {
          const uint64_t slot = hash.SlotOf(shape, candidate, version);
          const uint64_t before = hash.SlotOf(shape, candidate, version - 1);
          ASSERT_TRUE(slot == before || Shape::ParentOf(slot) == before);
        }
      }
    }
  }
}

TEST(NessieLayout, PlacesInTheRoot) {
  // Given the root of a table
  // When the places of its parts are computed
  // Expect what the page says
  EXPECT_EQ(kMovesOffset, 384u);
  EXPECT_EQ(kSweptOffset, 392u);
  EXPECT_EQ(kSparesOffset, 448u);
  EXPECT_EQ(kLogOffset, 576u);
  EXPECT_EQ(kLinesOffset, 4672u);
  EXPECT_EQ(sizeof(TableRoot), 5696u);
}

// ---- golden bytes ------------------------------------------------------------------------------------

// The tables of the example in docs/layouts/nessie.md: four slots, which grow when a key finds no place.
class Example {
 public:
  static constexpr Shape kShape{.initial_bits = 2};

  explicit Example(size_t clients) {
    for (size_t i = 0; i < clients; ++i) {
      members_.push_back(std::make_unique<TableMember>(
          world_, "nessie", MakeNessieEngine,
          OptionMap{{"slots", "4"}, {"max_load", "1"}, {"burst", "0"}, {"sweep", "0"}}));
    }
    // All of them know that the table was made: no operation waits for that.
    for (const auto& member : members_) member->Now(member->Maintain());
  }

  void Insert(size_t client, const char* key) { members_[client]->Now(members_[client]->Insert(key, "v")); }
  void Update(size_t client, const char* key) { members_[client]->Now(members_[client]->Update(key, "w")); }
  void Delete(size_t client, const char* key) { members_[client]->Now(members_[client]->Delete(key)); }
  // The client dies before its n-th verb, counted from 0, takes effect.
  template <class T>
  void DieBefore(size_t client, uint64_t nth, Task<T> task) {
    members_[client]->RunAndDieAt(nth, fabric::sim::FaultKind::kCrashBefore, std::move(task));
    if (!members_[client]->crashed()) world_.Complain("the client lives");
  }
  TableMember& member(size_t client) { return *members_[client]; }

  uint64_t root() const { return members_[0]->roots()[0].offset; }
  uint64_t segment(size_t segment) const {
    return WordAt(root() + kDirectoryOffset + segment * sizeof(uint64_t));
  }
  Word slot(uint64_t slot) const {
    const size_t in = kShape.SegmentOf(slot);
    return Word(WordAt(segment(in) + (slot - kShape.FirstSlot(in)) * sizeof(Word)));
  }
  std::string Dump(uint64_t offset, size_t bytes) const {
    return BriefDump(world_.memory().subspan(offset, bytes));
  }
  std::string DumpRoot() const { return Dump(root(), sizeof(TableRoot)); }
  std::string DumpSegment(size_t number) const { return Dump(segment(number), kShape.SegmentBytes(number)); }
  std::string DumpItem(uint64_t in) const { return Dump(slot(in).offset(), pool::kLine); }
  const std::string& problem() const { return world_.problem; }

 private:
  uint64_t WordAt(uint64_t offset) const { return LoadU64(world_.memory().data() + offset); }

  TableWorld world_;
  std::vector<std::unique_ptr<TableMember>> members_;
};

TEST(NessieLayout, SlotsOfTheExample) {
  // Given the keys of the example
  // When their slots are computed, in four slots and in eight
  // Expect what the page says
  struct Place {
    std::string_view key;
    uint64_t hash, tag, primary, secondary, primary_of_8, secondary_of_8;
  };
  for (const Place& place : {Place{"a", 0xe6c632b61e964e1f, 0x0f2d, 3, 1, 7, 5},
                             Place{"b", 0x575a0b1c44d8843f, 0x789d, 2, 3, 2, 3},
                             Place{"c", 0x8c40219a46b9f81b, 0x1fd4, 2, 1, 6, 1},
                             Place{"d", 0x45f80274c9c7a7ca, 0x1b82, 3, 2, 3, 2},
                             Place{"e", 0xe5e72e5e3bec4a78, 0x548a, 3, 0, 7, 0},
                             Place{"m", 0xf0904807418c57fc, 0x120a, 0, 3, 0, 7}}) {
    const KeyHash hash(Hash64(AsBytes(place.key)));
    EXPECT_EQ(hash.hash(), place.hash) << place.key;
    EXPECT_EQ(hash.tag(), place.tag) << place.key;
    EXPECT_EQ(hash.SlotOf(Example::kShape, Candidate::kPrimary, 1), place.primary) << place.key;
    EXPECT_EQ(hash.SlotOf(Example::kShape, Candidate::kSecondary, 1), place.secondary) << place.key;
    EXPECT_EQ(hash.SlotOf(Example::kShape, Candidate::kPrimary, 2), place.primary_of_8) << place.key;
    EXPECT_EQ(hash.SlotOf(Example::kShape, Candidate::kSecondary, 2), place.secondary_of_8) << place.key;
  }
}

TEST(NessieLayout, GoldenBytesOfAnEmptyTable) {
  // Given nothing
  // When a table of four slots is made
  // Expect exactly these bytes
  const Example table(1);
  ASSERT_EQ(table.problem(), "");
  // Steady, version 1; no records; one segment; no moves, nothing swept,
  // spare lines without owners, an empty log.
  EXPECT_EQ(table.DumpRoot(),
            "00000000  04 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000040  40 20 01 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // Empty words without an owner, also in the rest of the line.
  EXPECT_EQ(table.DumpSegment(0),
            "00000000  00 00 00 00 00 00 00 20  00 00 00 00 00 00 00 20\n"
            "*\n");
}

TEST(NessieLayout, GoldenBytesOfATableWithRecords) {
  // Given a table of four slots
  // When a, b, c and m are inserted, b is updated, and m is deleted
  // Expect exactly these bytes
  Example table(1);
  for (const char* key : {"a", "b", "c", "m"}) table.Insert(0, key);
  table.Update(0, "b");
  table.Delete(0, "m");
  ASSERT_EQ(table.problem(), "");
  // A token, where m was; c in its secondary slot; b; a.
  EXPECT_EQ(table.DumpSegment(0),
            "00000000  01 00 00 00 00 02 00 20  c3 06 00 00 00 04 f5 67\n"
            "00000010  c5 06 00 00 00 44 27 7e  c1 06 00 00 00 44 cb 63\n"
            "00000020  00 00 00 00 00 00 00 20  00 00 00 00 00 00 00 20\n"
            "*\n");
  // The new value of b names the word of the old one.
  EXPECT_EQ(table.DumpItem(2),
            "00000000  00 10 00 00 00 00 00 00  c2 06 00 00 00 44 27 7e\n"
            "00000010  31 ec c4 8e 5e 96 b1 35  01 00 00 00 01 00 00 00\n"
            "00000020  3f 84 d8 44 1c 0b 5a 57  22 8f 17 bb 74 7b 8d 71\n"
            "00000030  62 77 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n");
  // That of c names no value.
  EXPECT_EQ(table.DumpItem(1),
            "00000000  00 10 00 00 00 00 00 00  00 00 00 00 00 00 00 20\n"
            "00000010  c6 94 1f 55 8e f0 42 de  01 00 00 00 01 00 00 00\n"
            "00000020  1b f8 b9 46 9a 21 40 8c  25 45 03 e7 6e 8e e4 65\n"
            "00000030  63 76 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n");
}

TEST(NessieLayout, GoldenBytesOfAPendingEntry) {
  // Given a table with a and b
  // When a client updates a, and dies before it commits
  // Expect exactly these bytes
  Example table(2);
  table.Insert(0, "a");
  table.Insert(1, "b");
  table.DieBefore(1, 6, table.member(1).Update("a", "w"));
  ASSERT_EQ(table.problem(), "");
  EXPECT_EQ(table.DumpSegment(0),
            "00000000  00 00 00 00 00 00 00 20  00 00 00 00 00 00 00 20\n"
            "00000010  81 03 00 00 00 44 27 7e  82 03 00 00 00 44 cb 43\n"
            "00000020  00 00 00 00 00 00 00 20  00 00 00 00 00 00 00 20\n"
            "*\n");
  // Written by the other client; it names the word of the value that counts.
  EXPECT_EQ(table.DumpItem(3),
            "00000000  01 10 00 00 00 00 00 00  c1 06 00 00 00 44 cb 63\n"
            "00000010  d1 a2 fd b8 c4 88 62 f6  01 00 00 00 01 00 00 00\n"
            "00000020  1f 4e 96 1e b6 32 c6 e6  c9 14 f2 35 85 2d 1d fe\n"
            "00000030  61 77 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n");
}

TEST(NessieLayout, GoldenBytesOfAClaim) {
  // Given a table with a, m and b, in which e finds both of its slots taken
  // When a client moves a out of the way of e, and dies before the copy counts
  // Expect exactly these bytes
  Example table(2);
  for (const char* key : {"a", "m"}) table.Insert(0, key);
  table.Insert(1, "b");
  table.DieBefore(1, 13, table.member(1).Insert("e", "v"));
  ASSERT_EQ(table.problem(), "");
  // The source in slot 3, the claim in slot 1.
  EXPECT_EQ(table.DumpSegment(0),
            "00000000  c2 06 00 00 00 84 82 64  83 03 00 00 00 44 cb 83\n"
            "00000010  81 03 00 00 00 44 27 7e  c1 06 00 00 00 44 cb 63\n"
            "00000020  00 00 00 00 00 00 00 20  00 00 00 00 00 00 00 20\n"
            "*\n");
  // Moved once, from the slot that has that word.
  EXPECT_EQ(table.DumpItem(1),
            "00000000  01 10 00 00 01 00 00 00  c1 06 00 00 00 44 cb 63\n"
            "00000010  7f 49 2c 80 05 45 f7 e5  01 00 00 00 01 00 00 00\n"
            "00000020  1f 4e 96 1e b6 32 c6 e6  d5 63 0a b1 21 b2 dc 8b\n"
            "00000030  61 76 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n");
  // A move to a lower slot has taken number 1, and is not entered.
  EXPECT_EQ(table.Dump(table.root() + kMovesOffset, kLinesOffset - kMovesOffset),
            "00000000  01 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // When another client inserts e
  table.Insert(0, "e");
  ASSERT_EQ(table.problem(), "");
  // Expect a copy of a that is live, and e in its place
  EXPECT_EQ(table.DumpSegment(0),
            "00000000  c2 06 00 00 00 84 82 64  c4 06 00 00 00 44 cb 63\n"
            "00000010  81 03 00 00 00 44 27 7e  c3 06 00 00 00 84 22 75\n"
            "00000020  00 00 00 00 00 00 00 20  00 00 00 00 00 00 00 20\n"
            "*\n");
  // Move 2 is entered, with the hash of a.
  EXPECT_EQ(table.Dump(table.root() + kMovesOffset, kLinesOffset - kMovesOffset),
            "00000000  02 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "000000d0  02 00 00 00 00 00 00 00  1f 4e 96 1e b6 32 c6 e6\n"
            "000000e0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
}

TEST(NessieLayout, GoldenBytesOfAGrownTable) {
  // Given the table with records
  // When d is inserted, whose slots cannot be freed
  // Expect exactly these bytes: there are eight slots; a has moved to slot 7, and d stands where it was
  Example table(1);
  for (const char* key : {"a", "b", "c", "m"}) table.Insert(0, key);
  table.Update(0, "b");
  table.Delete(0, "m");
  table.Insert(0, "d");
  ASSERT_EQ(table.problem(), "");
  // Steady, version 2; no records were reported yet; two segments.
  EXPECT_EQ(table.DumpRoot(),
            "00000000  08 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000040  40 20 01 00 00 00 00 00  80 20 01 00 00 00 00 00\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  EXPECT_EQ(table.DumpSegment(0),
            "00000000  01 00 00 00 00 02 00 20  c3 06 00 00 00 04 f5 67\n"
            "00000010  c5 06 00 00 00 44 27 7e  c4 06 00 00 00 84 e0 66\n"
            "00000020  00 00 00 00 00 00 00 20  00 00 00 00 00 00 00 20\n"
            "*\n");
  // Slots 4 to 6 are not in use yet.
  EXPECT_EQ(table.DumpSegment(1),
            "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  c2 06 00 00 00 44 cb 63\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  EXPECT_EQ(table.DumpItem(7),
            "00000000  00 10 00 00 01 00 00 00  c1 06 00 00 00 44 cb 63\n"
            "00000010  d5 f5 c4 76 79 ca db 6d  01 00 00 00 01 00 00 00\n"
            "00000020  1f 4e 96 1e b6 32 c6 e6  d5 63 0a b1 21 b2 dc 8b\n"
            "00000030  61 76 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n");
}

}  // namespace
}  // namespace farside::index::nessie
