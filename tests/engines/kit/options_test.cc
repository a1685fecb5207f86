// How engines read their options.
#include "index/kit/options.h"

#include <array>
#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace farside::index {
namespace {

enum class Colour : uint8_t { kRed, kGreen, kBlue };

struct Paint {
  uint64_t coats = 1;
  uint64_t bucket = 64;
  uint64_t shades = 1;
  double gloss = 0.5;
  Nanos drying{0};
  Colour colour = Colour::kRed;
};

constexpr auto kColours = std::to_array<OptionWord<Colour>>(
    {{"red", Colour::kRed}, {"green", Colour::kGreen}, {"blue", Colour::kBlue}});
constexpr auto kRules = std::to_array<OptionRule<Paint>>({
    {"coats", [](Paint& p, const OptionText& given) { return Set(p.coats, given.Number(0, 3)); }},
    {"bucket", [](Paint& p, const OptionText& given) { return Set(p.bucket, given.MultipleOf(64, 256)); }},
    {"shades", [](Paint& p, const OptionText& given) { return Set(p.shades, given.PowerOfTwo(8)); }},
    {"gloss", [](Paint& p, const OptionText& given) { return Set(p.gloss, given.Fraction(0.25, 0.75)); }},
    {"drying_us", [](Paint& p, const OptionText& given) { return Set(p.drying, given.Micros(1, 10)); }},
    {"colour", [](Paint& p, const OptionText& given) { return SetToOneOf(p.colour, given, kColours); }},
});

Result<Paint> Parse(const OptionMap& options) { return ParseOptions("the paint", kRules, options); }

TEST(Options, WhatIsGiven_IsSet) {
  // Given options at the bounds of what is allowed. Expect their values; and defaults for what is not given.
  const Result<Paint> paint = Parse({{"coats", "0"},
                                     {"bucket", "256"},
                                     {"shades", "8"},
                                     {"gloss", "0.75"},
                                     {"drying_us", "10"},
                                     {"colour", "blue"}});
  ASSERT_TRUE(paint.ok()) << paint.error().ToString();
  EXPECT_EQ(paint->coats, 0u);
  EXPECT_EQ(paint->bucket, 256u);
  EXPECT_EQ(paint->shades, 8u);
  EXPECT_EQ(paint->gloss, 0.75);
  EXPECT_EQ(paint->drying, std::chrono::microseconds(10));
  EXPECT_EQ(paint->colour, Colour::kBlue);
  EXPECT_EQ(Parse({})->coats, 1u);
}

TEST(Options, WhatIsWrong_IsNamedWithWhatIsExpected) {
  // Given an option that no table has, and values just outside of what is allowed. Expect an error that says
  // what is.
  const struct {
    std::string key;
    std::string text;
    std::string message;
  } cases[] = {
      {"coat", "1", "the paint has no option 'coat'; it has coats, bucket, shades, gloss, drying_us, colour"},
      {"coats", "4", "option coats=4: expected a number from 0 to 3"},
      {"coats", "-1", "option coats=-1: expected a number from 0 to 3"},
      {"coats", "", "option coats=: expected a number from 0 to 3"},
      {"coats", "1x", "option coats=1x: expected a number from 0 to 3"},
      {"bucket", "0", "option bucket=0: expected a multiple of 64 up to 256"},
      {"bucket", "96", "option bucket=96: expected a multiple of 64 up to 256"},
      {"bucket", "320", "option bucket=320: expected a multiple of 64 up to 256"},
      {"shades", "0", "option shades=0: expected a power of two from 1 to 8"},
      {"shades", "3", "option shades=3: expected a power of two from 1 to 8"},
      {"shades", "16", "option shades=16: expected a power of two from 1 to 8"},
      {"gloss", "nan", "option gloss=nan: expected a number from 0.25 to 0.75"},
      {"gloss", "0.8", "option gloss=0.8: expected a number from 0.25 to 0.75"},
      {"drying_us", "11", "option drying_us=11: expected a number from 1 to 10"},
      {"colour", "Red", "option colour=Red: expected red or green or blue"},
  };
  for (const auto& [key, text, message] : cases) {
    const Result<Paint> paint = Parse({{key, text}});
    ASSERT_FALSE(paint.ok()) << key << "=" << text;
    EXPECT_EQ(paint.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(paint.error().message(), message);
  }
}

}  // namespace
}  // namespace farside::index
