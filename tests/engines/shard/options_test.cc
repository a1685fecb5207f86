// The options of a shard table.
#include "index/shard/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "index/shard/shard.h"

namespace farside::index::shard {
namespace {

using testing::HasSubstr;

TEST(ShardOptions, GoodOnesAreTaken) {
  const Result<Options> options = Options::Parse({{"buckets", "1024"},
                                                  {"slots", "32"},
                                                  {"overflow_slots", "4"},
                                                  {"max_load", "0.5"},
                                                  {"head_start", "0.1"},
                                                  {"alpha", "0.2"},
                                                  {"cache", "1000"},
                                                  {"backoff_us", "7"}});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->shape, (Shape{.initial_bits = 10, .slots = 32, .overflow_slots = 4}));
  EXPECT_EQ(options->max_load, 0.5);
  EXPECT_EQ(options->cached_locations, 1000u);
  EXPECT_EQ(options->backoff, std::chrono::microseconds(7));
}

TEST(ShardOptions, LocationCacheIsSizedByTheFabricUnlessANumberIsGiven) {
  EXPECT_EQ(Options::Parse({})->cached_locations, std::nullopt);
  EXPECT_EQ(Options::Parse({{"cache", "auto"}})->cached_locations, std::nullopt);
  EXPECT_EQ(Options::Parse({{"cache", "0"}})->cached_locations, 0u);
}

TEST(ShardOptions, OnlyThoseThatChangeBytesAreRecorded) {
  const Result<Options> options = Options::Parse({{"slots", "32"}, {"max_load", "0.5"}, {"cache", "1000"}});
  EXPECT_EQ(options->Recorded(), (OptionMap{{"buckets", "1"}, {"slots", "32"}, {"overflow_slots", "8"}}));
}

TEST(ShardOptions, BadOnesAreRefusedWithTheirNames) {
  const std::vector<std::pair<OptionMap, std::string>> bad = {
      {{{"buckets", "0"}}, "buckets=0"},
      {{{"buckets", "3"}}, "a power of two"},
      {{{"buckets", "2097152"}}, "a power of two from 1 to 1048576"},
      {{{"slots", "0"}}, "from 1 to 64"},
      {{{"slots", "65"}}, "from 1 to 64"},
      {{{"slots", "8x"}}, "slots=8x"},
      {{{"slots", "-1"}}, "slots=-1"},
      {{{"overflow_slots", "9"}}, "from 1 to 8"},
      {{{"max_load", "0"}}, "max_load=0"},
      {{{"max_load", "1"}}, "max_load=1"},
      {{{"max_load", "nan"}}, "max_load=nan"},
      {{{"alpha", ""}}, "alpha="},
      {{{"head_start", "0.6"}}, "head_start=0.6"},
      {{{"backoff_us", "0"}}, "backoff_us=0"},
      {{{"cache", "9223372036854775808"}}, "of 22 bytes each: a quarter of the machine's memory"},
      {{{"bucket", "1"}}, "has no option 'bucket'; it has buckets"},
  };
  for (const auto& [options, text] : bad) {
    const Result<Options> parsed = Options::Parse(options);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message(), HasSubstr(text));
    EXPECT_FALSE(MakeShardEngine(options).ok());
  }
}

TEST(ShardOptions, StressOptionsAreValid) {
  for (const OptionMap& options : (*MakeShardEngine({}))->stress_options()) {
    EXPECT_TRUE(MakeShardEngine(options).ok());
  }
}

}  // namespace
}  // namespace farside::index::shard
