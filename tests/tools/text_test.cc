#include "tools/common/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <string_view>

#include "base/random.h"

namespace farside::tools {
namespace {

using namespace std::string_view_literals;
using testing::HasSubstr;

std::string RandomBytes(Random& random, size_t most) {
  std::string bytes(random.Below(most + 1), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  return bytes;
}

TEST(Utf8, CharactersOfEachLength_AndTheirBounds) {
  for (const std::string_view good :
       {""sv, "\0"sv, "a"sv, "\x7f"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv, "\xed\x9f\xbf"sv,
        "\xee\x80\x80"sv, "\xef\xbf\xbf"sv, "\xf0\x90\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv}) {
    EXPECT_TRUE(IsUtf8(good)) << ToHex(good);
  }
  for (const std::string_view bad :
       {"\x80"sv, "\xc0\x80"sv, "\xc1\xbf"sv, "\xc3"sv, "\xe0\x9f\xbf"sv, "\xed\xa0\x80"sv, "\xe2\x82"sv,
        "\xf0\x8f\xbf\xbf"sv, "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff"sv, "a\xc3"sv,
        "\xc3\xc3\xa9"sv}) {
    EXPECT_FALSE(IsUtf8(bad)) << ToHex(bad);
  }
}

TEST(Readable, TextStays_TheRestIsEscaped) {
  EXPECT_EQ(Readable("caf\xc3\xa9 \"au lait\""), "caf\xc3\xa9 \"au lait\"");
  EXPECT_EQ(Readable("a\tb\nc\\d"), "a\\tb\\nc\\\\d");
  EXPECT_EQ(Readable("\0\x1b[2J\x7f\xff"sv), "\\x00\\x1b[2J\\x7f\\xff");
  EXPECT_EQ(Readable("\xc2\x9b!"), "\\xc2\\x9b!");  // a control character of more than a byte
  EXPECT_EQ(Readable("\xc3"), "\\xc3");
}

TEST(Readable, CharactersThatAreObeyedOrNotShown_AreEscaped) {
  // Given one of every sort of character that a terminal obeys or does not show. When it is shown between two
  // letters. Expect its bytes instead; also in a message, in which newlines and backslashes stay.
  constexpr std::array kHidden = {
      "\xc2\x9b",          // U+009B, a control character
      "\xc2\xad",          // U+00AD soft hyphen
      "\xd8\x9c",          // U+061C Arabic letter mark
      "\xe1\xa0\x8e",      // U+180E Mongolian vowel separator
      "\xe2\x80\x8b",      // U+200B zero width space
      "\xe2\x80\x8d",      // U+200D zero width joiner
      "\xe2\x80\x8f",      // U+200F right-to-left mark
      "\xe2\x80\xa8",      // U+2028 line separator
      "\xe2\x80\xa9",      // U+2029 paragraph separator
      "\xe2\x80\xae",      // U+202E right-to-left override
      "\xe2\x81\xa0",      // U+2060 word joiner
      "\xe2\x81\xa6",      // U+2066 left-to-right isolate
      "\xe2\x81\xa9",      // U+2069 pop directional isolate
      "\xef\xbb\xbf",      // U+FEFF byte order mark
      "\xef\xbf\xb9",      // U+FFF9 annotation anchor
      "\xf3\xa0\x81\x81",  // U+E0041 tag
      "\xed\xa0\x80",      // half of a pair, so no UTF-8
      "\xc0\x80",          // longer than it need be, so no UTF-8
      "\xe2\x80",          // cut short
  };
  for (const std::string_view hidden : kHidden) {
    const std::string text = "a" + std::string(hidden) + "b";
    std::string shown = "a";
    for (const char byte : hidden) shown += "\\x" + ToHex(std::string_view(&byte, 1));
    EXPECT_EQ(Readable(text), shown + "b");
    EXPECT_EQ(Harmless("\\\n" + text), "\\\n" + shown + "b");
  }
  // Neighbours that are shown: no-break space, hyphen, per mille sign, a CJK and a musical character.
  for (const std::string_view seen :
       {"\xc2\xa0", "\xe2\x80\x90", "\xe2\x80\xb0", "\xe4\xb8\xad", "\xf0\x9d\x84\x9e"}) {
    EXPECT_EQ(Readable(seen), seen);
    EXPECT_EQ(Harmless(seen), seen);
  }
}

TEST(Readable, DifferentBytes_LookDifferent) {
  // Given many short strings of bytes that need care. When they are shown.
  // Expect no two that look alike.
  constexpr std::string_view kBytes = "a\\x0c3\t\n\xc3\xa9\xff"sv;
  std::set<std::string> bytes;
  std::set<std::string> shown;
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text(random.Below(6), '\0');
    for (char& byte : text) byte = kBytes[random.Below(kBytes.size())];
    bytes.insert(text);
    shown.insert(Readable(text));
  }
  EXPECT_EQ(bytes.size(), shown.size());
}

TEST(HexAndBase64, WhatTheStandardSays) {
  // RFC 4648, section 10.
  EXPECT_EQ(ToBase64(""), "");
  EXPECT_EQ(ToBase64("f"), "Zg==");
  EXPECT_EQ(ToBase64("fo"), "Zm8=");
  EXPECT_EQ(ToBase64("foo"), "Zm9v");
  EXPECT_EQ(ToBase64("foob"), "Zm9vYg==");
  EXPECT_EQ(ToBase64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(ToBase64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(ToBase64("\xff\xff\xfe"), "///+");
  EXPECT_EQ(ToHex("\0\xffz"sv), "00ff7a");
  EXPECT_EQ(*FromHex("00Ff7A"), "\0\xffz"sv);
}

TEST(HexAndBase64, RandomBytes_ComeBack) {
  Random random(1);
  for (int i = 0; i < 5'000; ++i) {
    const std::string bytes = RandomBytes(random, 70);
    for (const Encoding encoding : {Encoding::kPlain, Encoding::kHex, Encoding::kBase64}) {
      const Result<std::string> back = Decode(Encode(bytes, encoding), encoding);
      ASSERT_TRUE(back.ok()) << back.error().message();
      ASSERT_EQ(*back, bytes);
    }
  }
}

TEST(HexAndBase64, WhatIsNone_IsRefused) {
  for (const std::string_view bad : {"0"sv, "0g"sv, "0x10"sv, " 10"sv, "1\xc3"sv, "-1"sv, "+1"sv}) {
    EXPECT_FALSE(FromHex(bad).ok()) << bad;
  }
  for (const std::string_view bad :
       {"A"sv, "AA"sv, "AAA"sv, "A==="sv, "===="sv, "AA=A"sv, "=AAA"sv, "A A="sv, "AA==AAAA"sv, "AAA\0"sv,
        "AB=="sv, "AAB="sv, "AA-_"sv, "AAAA\n"sv, "\xff\xff\xff\xff"sv}) {
    EXPECT_FALSE(FromBase64(bad).ok()) << bad;
  }
  EXPECT_THAT(FromBase64("AB==").error().message(), HasSubstr("bits to spare"));
  EXPECT_THAT(FromBase64("A\xff\n=").error().message(), HasSubstr("'A\\xff\\n=' is not base64"));
}

TEST(HexAndBase64, EveryText_IsThatOfOtherBytes) {
  // Given random texts of base64's characters. When one can be decoded.
  // Expect that it is the one which the bytes are encoded as.
  constexpr std::string_view kDigits = "AQgw/+9z=";
  Random random(3);
  int decoded = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text(4 * random.Below(3), 'A');
    for (char& digit : text) digit = kDigits[random.Below(kDigits.size())];
    const Result<std::string> bytes = FromBase64(text);
    if (!bytes.ok()) continue;
    ++decoded;
    ASSERT_EQ(ToBase64(*bytes), text);
  }
  EXPECT_GT(decoded, 1'000);
}

}  // namespace
}  // namespace farside::tools
