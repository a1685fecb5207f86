// The bytes of the continuity table.
#include "index/continuity/layout.h"

#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "index/continuity/slot.h"
#include "tests/engines/continuity/bare_table.h"
#include "tests/support/brief_dump.h"

namespace farside::index::continuity {
namespace {

std::string Dump(const Slot& slot) { return BriefDump(std::as_bytes(std::span(slot.words))); }

TEST(ContinuityLayout, SlotsOfAllSizes) {
  // Given keys and values of all sizes that fit into a slot
  // When they are put into slots
  // Expect to find them there again, and that what does not fit is not taken for something that does
  for (size_t key = 0; key <= kMostInSlot; ++key) {
    for (size_t value = 0; key + value <= kMostInSlot; ++value) {
      ASSERT_TRUE(FitsSlot(key, value));
      const std::string key_text(key, 'k');
      const std::string value_text(value, '\xff');
      const Slot slot = RecordSlot(key_text, value_text);
      const std::optional<SlotView> view = DecodeSlot(slot);
      ASSERT_TRUE(view.has_value()) << key << " " << value;
      EXPECT_FALSE(view->in_block);
      EXPECT_EQ(view->key, key_text);
      EXPECT_EQ(view->value, value_text);
    }
    EXPECT_FALSE(FitsSlot(key, kMostInSlot + 1 - key));
  }
  EXPECT_FALSE(FitsSlot(~size_t{0}, 1));
  EXPECT_FALSE(FitsSlot(1, ~size_t{0}));
  const Slot block = BlockSlot(0x1240, 128, 0x123456789abcdef0);
  const std::optional<SlotView> view = DecodeSlot(block);
  ASSERT_TRUE(view.has_value());
  EXPECT_TRUE(view->in_block);
  EXPECT_EQ(view->offset, 0x1240u);
  EXPECT_EQ(view->bytes, 128u);
  EXPECT_EQ(view->hash, 0x123456789abcdef0u);
}

TEST(ContinuityLayout, DamagedSlotsSayNothing) {
  // Given slots that no handler has written
  // When they are decoded
  // Expect nothing: of zeros, of a wrong kind, of lengths that do not fit, of bits that have to be zero
  EXPECT_FALSE(DecodeSlot(Slot()).has_value());
  const auto with_byte = [](Slot slot, size_t at, uint8_t byte) {
    std::as_writable_bytes(std::span(slot.words))[at] = std::byte{byte};
    return slot;
  };
  const Slot small = RecordSlot("key", "value");
  EXPECT_FALSE(DecodeSlot(with_byte(small, 0, 3 << 3)).has_value());
  EXPECT_FALSE(DecodeSlot(with_byte(small, 0, 3 << 3 | 1 | 4)).has_value());
  EXPECT_FALSE(DecodeSlot(with_byte(small, 31, 28)).has_value());
  EXPECT_FALSE(DecodeSlot(with_byte(small, 31, 255)).has_value());
  EXPECT_TRUE(DecodeSlot(with_byte(small, 31, 27)).has_value());
  const Slot block = BlockSlot(64, 64, 1);
  EXPECT_FALSE(DecodeSlot(with_byte(block, 0, 3 | 1 << 3)).has_value());
  EXPECT_FALSE(DecodeSlot(with_byte(block, 7, 1)).has_value());
}

TEST(ContinuityLayout, GoldenBytesOfSlots) {
  // Given a small record, one that fills its slot, and one in a block
  // When they are put into slots
  // Expect exactly these bytes
  EXPECT_EQ(Dump(RecordSlot("key", "value")),
            "00000000  19 6b 65 79 76 61 6c 75  65 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 05\n");
  EXPECT_EQ(Dump(RecordSlot("0123456789abcdef", "ghijklmnopqrstu")),
            "00000000  82 30 31 32 33 34 35 36  37 38 39 61 62 63 64 65\n"
            "00000010  66 67 68 69 6a 6b 6c 6d  6e 6f 70 71 72 73 74 75\n");
  EXPECT_EQ(Dump(BlockSlot(0x1240, 128, 0x123456789abcdef0)),
            "00000000  03 00 00 00 00 00 00 00  40 12 00 00 00 00 00 00\n"
            "00000010  80 00 00 00 00 00 00 00  f0 de bc 9a 78 56 34 12\n");
}

TEST(ContinuityLayout, Words) {
  // Given indicators, shapes and words of tables
  // When they are made
  // Expect each field where the page says; a sequence that ends is even, and never what it was
  Indicator word = Indicator().WithBits(0x80000001);
  EXPECT_EQ(word.Begun().word(), uint64_t{1} << 32 | 0x80000001);
  EXPECT_TRUE(word.Begun().odd());
  EXPECT_EQ(word.Begun().Begun().word(), uint64_t{3} << 32 | 0x80000001) << "a power cut has left it odd";
  EXPECT_EQ(word.Begun().Ended().word(), uint64_t{2} << 32 | 0x80000001);
  EXPECT_EQ(word.MovedOn().word(), uint64_t{1} << 63 | uint64_t{2} << 32 | 0x80000001);
  word = Indicator(uint64_t{0x7ffffffe} << 32);
  EXPECT_EQ(word.Begun().Ended().word(), 0u) << "sequences wrap, and do not run into the mark";
  EXPECT_EQ(Shape(64, 4, 12, 12, 10).word(),
            uint64_t{10} << 44 | uint64_t{12} << 39 | uint64_t{12} << 35 | uint64_t{4} << 32 | 64);
  EXPECT_EQ(Shape(64, 4, 12, 12, 10).SlotsOf(false), 0xfff0ffffu);
  EXPECT_EQ(Shape(64, 4, 12, 12, 10).SlotsOf(true), 0xfffffff0u);
  EXPECT_EQ(Shape(64, 4, 12, 12, 10).SlotsOfPair(), 20u);
  EXPECT_FALSE(Shape(1, 1, 1, 2, 1).is_sound()) << "a group is no larger than a shared region";
  EXPECT_EQ(TableWord(0x1240, 5).word(), uint64_t{5} << 42 | 0x1240 / 64);
  for (uint32_t slot = 0; slot < kFirstGroup; ++slot) {
    const uint64_t at = kTableHeadBytes + SlotInPair(slot);
    EXPECT_EQ(at / 64, (at + kSlotBytes - 1) / 64) << "slot " << slot << " lies inside one line";
  }
}

TEST(ContinuityLayout, GoldenBytesOfATable) {
  // Given a table of one pair with a small record, a counter and a long record
  // When its bytes are dumped
  // Expect exactly these: the root; the table with the group count, and its pair
  constexpr Shape kShape(1, 4, 12, 12, 10);
  std::vector<std::byte> bytes = EmptyTable(kShape, 2048);
  PlainMemory memory(bytes);
  BareClient client(FirstFree(kShape));
  ASSERT_TRUE(client.Make(memory, {.key = "a", .value = "small"}).ok());
  ASSERT_TRUE(client.Make(memory, {.kind = ChangeKind::kIncrement, .key = "n", .delta = 258}).ok());
  ASSERT_TRUE(client.Make(memory, {.key = "b", .value = std::string(40, 'v')}).ok());
  EXPECT_EQ(BriefDump(std::span(bytes).subspan(kBareRoot, sizeof(Root))),
            "00000000  09 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000010  00 00 00 00 00 00 00 00  01 00 00 00 64 a6 00 00\n"
            "00000020  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
  // n in slot 0; b, in a block, in slot 18; a in slot 19. Three changes make the sequence 6.
  EXPECT_EQ(BriefDump(std::span(bytes).subspan(kBareTable, TableBytes(1))),
            "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "00000040  09 6e 02 01 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "00000050  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 08\n"
            "00000060  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "000000c0  01 00 0c 00 06 00 00 00  00 00 00 00 00 00 00 00\n"
            "000000d0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n"
            "000002a0  03 00 00 00 00 00 00 00  40 05 00 00 00 00 00 00\n"
            "000002b0  80 00 00 00 00 00 00 00  3f 84 d8 44 1c 0b 5a 57\n"
            "000002c0  09 61 73 6d 61 6c 6c 00  00 00 00 00 00 00 00 00\n"
            "000002d0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 05\n"
            "000002e0  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00\n"
            "*\n");
}

}  // namespace
}  // namespace farside::index::continuity
