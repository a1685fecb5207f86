#include "base/bytes.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace farside {
namespace {

using namespace std::string_view_literals;

// Given bytes 1, 2, ... at every alignment. When numbers are loaded. Expect the first byte to count least.
TEST(Bytes, LoadIsLittleEndianAtAnyAddress) {
  for (size_t shift = 0; shift < 8; ++shift) {
    std::array<std::byte, 16> buffer{};
    for (size_t i = 0; i < 8; ++i) buffer[shift + i] = static_cast<std::byte>(i + 1);
    const std::byte* const at = buffer.data() + shift;
    EXPECT_EQ(LoadU16(at), 0x0201u);
    EXPECT_EQ(LoadU32(at), 0x04030201u);
    EXPECT_EQ(LoadU64(at), 0x0807060504030201u);
  }
}

// Given a buffer of 0xee. When numbers are stored at every alignment. Expect their bytes, the least
// significant first, and all others untouched.
TEST(Bytes, StoreIsLittleEndianAndTouchesNothingElse) {
  static constexpr auto kUntouched = std::byte{0xee};
  for (size_t shift = 0; shift < 8; ++shift) {
    const auto expect_stored = [shift](size_t size, auto store) {
      std::array<std::byte, 16> buffer;
      buffer.fill(kUntouched);
      store(buffer.data() + shift);
      for (size_t i = 0; i < buffer.size(); ++i) {
        const bool inside = i >= shift && i < shift + size;
        EXPECT_EQ(buffer[i], inside ? static_cast<std::byte>(i - shift + 1) : kUntouched) << "byte " << i;
      }
    };
    expect_stored(2, [](std::byte* to) { StoreU16(to, 0x0201); });
    expect_stored(4, [](std::byte* to) { StoreU32(to, 0x04030201); });
    expect_stored(8, [](std::byte* to) { StoreU64(to, 0x0807060504030201); });
  }
}

// Given text of others. Expect that it is escaped, and no longer than allowed.
TEST(Bytes, TextOfOthersIsEscapedAndClipped) {
  EXPECT_EQ(EscapeAtMost("good", 4), "good");
  EXPECT_EQ(EscapeAtMost("a\x1b[2J\n", 100), "a\\x1b[2J\\x0a");
  EXPECT_EQ(EscapeAtMost("12345", 4), "1234...");
  EXPECT_EQ(EscapeAtMost("", 0), "");
}

// Given the extreme numbers. When they are stored and loaded. Expect them back.
TEST(Bytes, ExtremeNumbersComeBack) {
  std::array<std::byte, 8> buffer{};
  for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{0x8000000000000000}, ~uint64_t{0}}) {
    StoreU64(buffer.data(), value);
    EXPECT_EQ(LoadU64(buffer.data()), value);
    StoreU32(buffer.data(), static_cast<uint32_t>(value));
    EXPECT_EQ(LoadU32(buffer.data()), static_cast<uint32_t>(value));
    StoreU16(buffer.data(), static_cast<uint16_t>(value));
    EXPECT_EQ(LoadU16(buffer.data()), static_cast<uint16_t>(value));
  }
}

// Given text with a zero in it. When it is seen as bytes and as text again. Expect the same memory.
TEST(Bytes, TextAndBytesAreTheSameMemory) {
  const std::string_view text = "a\0b"sv;
  const std::span<const std::byte> bytes = AsBytes(text);
  EXPECT_EQ(static_cast<const void*>(bytes.data()), text.data());
  ASSERT_EQ(bytes.size(), 3u);
  EXPECT_EQ(bytes[2], std::byte{'b'});
  EXPECT_EQ(AsText(bytes), text);
  EXPECT_TRUE(AsText(AsBytes("")).empty());
}

// Given printable keys, binary keys and those with quotes. Expect what a person can read and quote.
TEST(Escape, ShowsBinaryKeys) {
  EXPECT_EQ(Escape(""), "");
  EXPECT_EQ(Escape("user:17 ~"), "user:17 ~");
  EXPECT_EQ(Escape("k\0\xff"sv), R"(k\x00\xff)");
  EXPECT_EQ(Escape("\n\t\x7f\x80"), R"(\x0a\x09\x7f\x80)");
  EXPECT_EQ(Escape(R"(a\b"c)"), R"(a\\b\"c)");
}

// Given every key of one and two bytes, and keys that look like escapes. Expect no two to look alike.
TEST(Escape, DifferentKeysNeverLookAlike) {
  std::set<std::string> seen;
  size_t keys = 0;
  for (int first = 0; first < 256; ++first) {
    seen.insert(Escape(std::string(1, static_cast<char>(first))));
    ++keys;
    for (int second = 0; second < 256; ++second) {
      seen.insert(Escape(std::string{static_cast<char>(first), static_cast<char>(second)}));
      ++keys;
    }
  }
  for (const std::string_view key : {R"(\x00)"sv, R"(\\x00)"sv}) {
    seen.insert(Escape(key));
    ++keys;
  }
  EXPECT_EQ(seen.size(), keys);
}

// Given 18 bytes at offset 0x40. Expect a full line and a padded one, whose columns stand below each other.
TEST(HexDump, ShowsOffsetsBytesAndText) {
  std::array<std::byte, 18> bytes{};
  bytes[0] = std::byte{'k'};
  bytes[1] = std::byte{0xff};
  bytes[15] = std::byte{'~'};
  bytes[16] = std::byte{'\n'};
  bytes[17] = std::byte{' '};
  EXPECT_EQ(HexDump(bytes, 0x40),
            "00000040  6b ff 00 00 00 00 00 00  00 00 00 00 00 00 00 7e  |k..............~|\n"
            "00000050  0a 20                                             |. |\n");
}

// Given no bytes, exactly one line, and an offset beyond 32 bits. Expect no line, one line, a wide offset.
TEST(HexDump, AtTheEdges) {
  EXPECT_EQ(HexDump({}), "");
  const std::array<std::byte, 16> line{};
  EXPECT_EQ(HexDump(line),
            "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n");
  EXPECT_TRUE(HexDump(AsBytes("A"), 0x123456789a).starts_with("123456789a  41 "));
}

}  // namespace
}  // namespace farside
