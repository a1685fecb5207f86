// The bytes of the shard table.
#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"
#include "tests/engines/shard/world.h"

namespace farside::index::shard {
namespace {

TEST(ShardLayout, EntryWord) {
  const Entry entry = Entry::Of(0x12340, 128, 0x1abcd);
  EXPECT_EQ(entry.word(), uint64_t{0x1abcd} << 46 | uint64_t{2} << 42 | 0x12340 / 64);
  EXPECT_EQ(entry.offset(), 0x12340u);
  EXPECT_EQ(entry.bytes(), 128u);
  EXPECT_EQ(entry.tag(), 0x1abcdu);
  EXPECT_FALSE(entry.flag());
  EXPECT_EQ(entry.WithFlag(true).word(), entry.word() | uint64_t{1} << 63);
  EXPECT_EQ(entry.WithFlag(true).WithTag(0).offset(), 0x12340u);
  // A size that does not fit is left to the block's own header.
  EXPECT_EQ(Entry::Of(64, uint64_t{15} * 64, 0).bytes(), 15u * 64);
  EXPECT_EQ(Entry::Of(64, uint64_t{16} * 64, 0).bytes(), 0u);
  EXPECT_TRUE(Entry::Of(64, uint64_t{16} * 64, 0).has_block());
}

TEST(ShardLayout, EmptySlotHoleAndLink) {
  EXPECT_TRUE(Entry().empty());
  EXPECT_TRUE(Entry(uint64_t{1} << 63).empty());
  EXPECT_EQ(Entry::Hole().word(), uint64_t{1} << 42);
  EXPECT_TRUE(Entry::Hole().is_hole());
  EXPECT_FALSE(Entry::Hole().empty());
  EXPECT_FALSE(Entry::Hole().has_block());
  EXPECT_EQ(Entry::Link(0x4000).word(), uint64_t{1} << 63 | 0x100);
  EXPECT_EQ(Entry::Link(0x4000).offset(), 0x4000u);
}

TEST(ShardLayout, FlagsOfALine) {
  Line line;
  line.set_version(0x25);
  EXPECT_EQ(line.version(), 0x25u);
  for (size_t slot = 0; slot < kSlotsPerLine; ++slot) {
    EXPECT_EQ(line.entries[slot].flag(), slot < 6 && ((0x25 >> slot) & 1) != 0) << slot;
  }
  EXPECT_FALSE(line.overflow());
  line.entries[6] = line.entries[6].WithFlag(true);
  EXPECT_TRUE(line.overflow());
  EXPECT_FALSE(line.has_link());
  line.entries[7] = Entry::Link(64);
  EXPECT_TRUE(line.has_link());
  EXPECT_EQ(line.version(), 0x25u);
}

TEST(ShardLayout, LockWord) {
  const pool::Owner owner(3, 5);
  EXPECT_EQ(UnitLock(owner, 0x123456789).word(), uint64_t{0x23456789} << 32 | owner.bits());
  EXPECT_EQ(UnitLock(owner, 7).owner(), owner);
}

std::string Dump(Stage& stage, uint64_t offset, size_t bytes) {
  return HexDump(stage.world.memory().subspan(offset, bytes));
}

TEST(ShardLayout, GoldenBytesOfATableThatHasGrown) {
  // Given a table with buckets of two slots, and lines of level 2 with one
  // When a few keys are put, one is deleted, and the table grows and is split
  // Expect exactly these bytes
  Stage stage({{"slots", "2"}, {"overflow_slots", "1"}});
  Member& member = stage.Enter();
  for (const char* key : {"a", "b", "c", "d", "e"}) member.Now(member.Put(key, "v"));
  member.Now(member.Delete("a"));
  stage.GrowTo(2);
  member.Now(member.Put("b", "w"));
  stage.Announce({&member});
  ASSERT_EQ(stage.world.problem, "");
  // Announced, version 2, one step; five records; three segments.
  EXPECT_EQ(Dump(stage, stage.world.roots[0].offset, 128),
            "00000000  0a 01 00 00 00 00 00 00  05 00 00 00 00 00 00 00  |................|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  40 20 01 00 00 00 00 00  00 21 01 00 00 00 00 00  |@ .......!......|\n"
            "00000050  40 c0 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |@...............|\n"
            "00000060  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000070  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  // Version 2 in the flags of slots 0 to 5, overflow in that of slot 6.
  EXPECT_EQ(Dump(stage, stage.SegmentBase(0), 64),
            "00000000  81 05 00 00 00 84 8a 75  00 00 00 00 00 00 00 80  |.......u........|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 80  00 00 00 00 00 00 00 00  |................|\n");
  // An entry of level 2, and a link.
  EXPECT_EQ(Dump(stage, stage.SegmentBase(0) + 64, 64),
            "00000000  86 03 00 00 00 84 76 18  00 00 00 00 00 00 00 80  |......v.........|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  43 04 00 00 00 00 00 80  |........C.......|\n");
  // No lock is held.
  EXPECT_EQ(Dump(stage, stage.SegmentBase(0) + 128, 64),
            "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  // The same of the second unit.
  EXPECT_EQ(Dump(stage, stage.SegmentBase(1), 64),
            "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 80  |................|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 80  00 00 00 00 00 00 00 00  |................|\n");
  EXPECT_EQ(Dump(stage, stage.SegmentBase(1) + 64, 64),
            "00000000  84 03 00 00 00 c4 3a 3c  00 00 00 00 00 00 00 80  |......:<........|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  42 04 00 00 00 00 00 80  |........B.......|\n");
  // The node that the link of the first unit names.
  const Entry link(stage.Word(stage.SegmentBase(0) + 64 + 56));
  ASSERT_TRUE(link.flag());
  EXPECT_EQ(Dump(stage, link.offset(), 64),
            "00000000  83 03 00 00 00 84 a9 20  00 00 00 00 00 00 00 00  |....... ........|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  // The third segment has two units: a bucket, its line of level 2, the next bucket, its line.
  stage.Activate();
  stage.LearnAll();
  for (const char* key : {"b", "c", "d", "e"}) member.Now(member.Put(key, "x"));
  ASSERT_EQ(stage.world.problem, "");
  EXPECT_EQ(Dump(stage, stage.SegmentBase(2), 256),
            "00000000  81 05 00 00 00 84 8a f5  00 00 00 00 00 00 00 80  |................|\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000030  00 00 00 00 00 00 00 80  00 00 00 00 00 00 00 00  |................|\n"
            "00000040  87 03 00 00 00 84 76 98  00 00 00 00 00 00 00 80  |......v.........|\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000060  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "00000070  00 00 00 00 00 00 00 00  45 04 00 00 00 00 00 80  |........E.......|\n"
            "00000080  00 00 00 00 00 00 00 80  00 00 00 00 00 00 00 80  |................|\n"
            "00000090  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "000000a0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "000000b0  00 00 00 00 00 00 00 80  00 00 00 00 00 00 00 00  |................|\n"
            "000000c0  89 03 00 00 00 c4 3a bc  00 00 00 00 00 00 00 80  |......:.........|\n"
            "000000d0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "000000e0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
            "000000f0  00 00 00 00 00 00 00 00  44 04 00 00 00 00 00 80  |........D.......|\n");
}

}  // namespace
}  // namespace farside::index::shard
