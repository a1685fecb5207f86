// What the chime table can be told, and what it makes of nonsense.
#include "index/chime/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "index/chime/chime.h"

namespace farside::index::chime {
namespace {

using testing::HasSubstr;

TEST(ChimeOptions, Defaults) {
  // Given no options. Expect leaves of 64 entries, neighbourhoods of 8, and keys of any bytes.
  const Options options = *Options::Parse({});
  EXPECT_EQ(options.shape.span, 64u);
  EXPECT_EQ(options.shape.neighbourhood, 8u);
  EXPECT_FALSE(options.shape.inline_keys);
  EXPECT_EQ(options.hotspot_bytes, 524'288u);
  EXPECT_EQ(options.Recorded(),
            (OptionMap{{"keys", "bytes"}, {"span", "64"}, {"neighbourhood", "8"}, {"fanout", "64"}}));
  // What is recorded can be parsed.
  EXPECT_TRUE(Options::Parse(options.Recorded()).ok());
  EXPECT_TRUE((*MakeChimeEngine({}))->traits().ordered);
}

TEST(ChimeOptions, SmallLeaves_HaveSmallNeighbourhoods) {
  // Given a span below the usual neighbourhood. Expect a neighbourhood that fits; but what was asked for is
  // not changed.
  EXPECT_EQ(Options::Parse({{"span", "4"}})->shape.neighbourhood, 4u);
  EXPECT_FALSE(Options::Parse({{"span", "4"}, {"neighbourhood", "8"}}).ok());
}

TEST(ChimeOptions, Nonsense_IsRefusedByName) {
  // Given bad values and an unknown option. Expect an error that names it.
  for (const auto& [key, value] : OptionMap{{"keys", "long"},
                                            {"span", "0"},
                                            {"span", "65"},
                                            {"fanout", "1"},
                                            {"cache", "-1"},
                                            {"hotspot", "1MB"},
                                            {"hotspot", "9223372036854775808"},
                                            {"neighbourhood", "17"},
                                            {"leaf_read", "some"},
                                            {"insert_read", "some"},
                                            {"fence_read", "never"},
                                            {"lock_read", "whole"},
                                            {"backoff_us", "0"},
                                            {"color", "red"}}) {
    const Result<Options> parsed = Options::Parse({{key, value}});
    ASSERT_FALSE(parsed.ok()) << key;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message(), HasSubstr(key));
  }
}

}  // namespace
}  // namespace farside::index::chime
