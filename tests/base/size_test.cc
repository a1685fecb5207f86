#include "base/size.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/random.h"

namespace farside {
namespace {

using namespace std::string_view_literals;

constexpr uint64_t kMaxWord = std::numeric_limits<uint64_t>::max();

void ExpectSize(std::string_view text, uint64_t bytes) {
  const Result<uint64_t> size = ParseSize(text);
  ASSERT_TRUE(size.ok()) << text << ": " << size.error().message();
  EXPECT_EQ(*size, bytes) << text;
}

// Given plain numbers and numbers with each unit. Expect the bytes.
TEST(ParseSize, ReadsBytesAndBinaryUnits) {
  ExpectSize("0", 0);
  ExpectSize("64", 64);
  ExpectSize("8KiB", 8192);
  ExpectSize("1MiB", 1048576);
  ExpectSize("8GiB", uint64_t{8} << 30);
  ExpectSize("2TiB", uint64_t{2} << 40);
  ExpectSize("0GiB", 0);
}

// Given what people and programs may write instead. Expect a refusal that shows the text and how to write it.
TEST(ParseSize, RefusesEverythingElseWithAnExample) {
  for (const std::string_view text : {""sv,        "GiB"sv,
                                      "-1"sv,      "+1"sv,
                                      " 1"sv,      "1 "sv,
                                      "8 GiB"sv,   "8G"sv,
                                      "8GB"sv,     "8gib"sv,
                                      "8Gib!"sv,   "8GiB "sv,
                                      "1.5GiB"sv,  "1e9"sv,
                                      "0x10"sv,    "1,000"sv,
                                      "8GiBGiB"sv, "8B"sv,
                                      "8PiB"sv,    "lots"sv,
                                      "8\0"sv,     "99999999999999999999999G"sv}) {
    const Result<uint64_t> size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.error().code(), ErrorCode::kInvalidArgument) << text;
    EXPECT_NE(size.error().message().find("is not a size"), std::string::npos) << text;
    EXPECT_NE(size.error().message().find("such as 4096 or 8GiB"), std::string::npos) << text;
  }
  EXPECT_TRUE(ParseSize("8Gib!").error().message().starts_with("\"8Gib!\" is not a size"));
  EXPECT_TRUE(ParseSize("8\n\""sv).error().message().starts_with(R"("8\x0a\"" is not a size)"));
}

// Given the largest sizes and one more, in each unit. Expect the first to be read and the second refused.
TEST(ParseSize, RefusesWhatDoesNotFit) {
  ExpectSize("18446744073709551615", kMaxWord);
  ExpectSize("18014398509481983KiB", kMaxWord - 1023);
  ExpectSize("16777215TiB", uint64_t{16777215} << 40);
  for (const std::string_view text :
       {"18446744073709551616"sv, "18014398509481984KiB"sv, "16777216TiB"sv, "99999999999999999999999"sv}) {
    const Result<uint64_t> size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(size.error().message().find("too large"), std::string::npos) << size.error().message();
  }
}

// Given round and uneven sizes. Expect the largest unit that needs no fraction.
TEST(FormatSize, IsExactInTheLargestUnit) {
  EXPECT_EQ(FormatSize(0), "0");
  EXPECT_EQ(FormatSize(1), "1");
  EXPECT_EQ(FormatSize(1000), "1000");
  EXPECT_EQ(FormatSize(1024), "1KiB");
  EXPECT_EQ(FormatSize(1025), "1025");
  EXPECT_EQ(FormatSize(uint64_t{1536} << 20), "1536MiB");
  EXPECT_EQ(FormatSize(uint64_t{8} << 30), "8GiB");
  EXPECT_EQ(FormatSize(uint64_t{1} << 63), "8388608TiB");
  EXPECT_EQ(FormatSize(kMaxWord), "18446744073709551615");
}

// Given sizes of all magnitudes, many of them round. Expect ParseSize to read back what FormatSize wrote.
TEST(FormatSize, IsReadBack) {
  Random random(1);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t size = random.LogUniform(kMaxWord) << random.Below(50);
    ExpectSize(FormatSize(size), size);
  }
}

}  // namespace
}  // namespace farside
