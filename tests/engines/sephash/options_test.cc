// The options of a sephash table.
#include "index/sephash/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "index/sephash/sephash.h"

namespace farside::index::sephash {
namespace {

using testing::HasSubstr;

TEST(SephashOptions, NoneGiven_TheShapeFillsItsSizeClasses) {
  // Given no options When they are parsed Expect CurSegments of 1 KiB that are filled to the last byte,
  // MainSegments of up to 16 pages of 4 KiB, and all techniques of the paper
  const Result<Options> options = Options::Parse({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->shape, (Shape{.entries = 126, .main = 64, .initial_bits = 0, .depth_bits = 4}));
  EXPECT_EQ(options->shape.segment_bytes(), 1024u);
  EXPECT_EQ(sizeof(SegmentHeader) + options->shape.entries * sizeof(Entry), 1024u);
  EXPECT_EQ(options->shape.page_bytes(), 4096u);
  EXPECT_EQ(options->shape.PagesOf(options->shape.most_main_entries() + options->shape.entries), 16u);
  EXPECT_EQ(options->fp_table, FpTableKind::kPoints);
  EXPECT_TRUE(options->filter);
  EXPECT_TRUE(options->zero_wait);
  EXPECT_EQ(options->window, 16u);
  EXPECT_EQ(options->split_by, SplitBy::kEntries);
  EXPECT_EQ(options->backoff, std::chrono::microseconds(4));
}

TEST(SephashOptions, AllGiven_AllAreTaken) {
  // Given every option with a value that is not its default
  // When they are parsed
  // Expect these values
  const Result<Options> options = Options::Parse({{"entries", "14"},
                                                  {"main", "8"},
                                                  {"segments", "1024"},
                                                  {"depth_bits", "2"},
                                                  {"fptable", "naive"},
                                                  {"filter", "no"},
                                                  {"window", "0"},
                                                  {"zero_wait", "no"},
                                                  {"split_by", "blocks"},
                                                  {"backoff_us", "7"}});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->shape, (Shape{.entries = 14, .main = 8, .initial_bits = 10, .depth_bits = 2}));
  EXPECT_EQ(options->fp_table, FpTableKind::kNaive);
  EXPECT_FALSE(options->filter);
  EXPECT_EQ(options->window, 0u);
  EXPECT_FALSE(options->zero_wait);
  EXPECT_EQ(options->split_by, SplitBy::kBlocks);
  EXPECT_EQ(options->backoff, std::chrono::microseconds(7));
  EXPECT_EQ(Options::Parse({{"fptable", "none"}})->fp_table, FpTableKind::kNone);
}

TEST(SephashOptions, OnlyThoseThatChangeBytesAreRecorded) {
  // Given options of the table and options of a client
  // When the table records them
  // Expect those of the table, also where they are defaults, and none of the client's
  const Result<Options> options = Options::Parse(
      {{"entries", "6"}, {"segments", "4"}, {"fptable", "naive"}, {"filter", "no"}, {"window", "3"}});
  const OptionMap recorded = options->Recorded();
  EXPECT_EQ(recorded, (OptionMap{{"entries", "6"}, {"main", "64"}, {"segments", "4"}, {"depth_bits", "4"}}));
  EXPECT_EQ(Options::Parse(recorded)->shape, options->shape);
}

TEST(SephashOptions, BadOnesAreRefusedWithTheirNames) {
  // Given a value that an option cannot have, or an option that there is not
  // When it is parsed, or an engine is made with it
  // Expect kInvalidArgument with a text that says what was wrong
  const std::vector<std::pair<OptionMap, std::string>> bad = {
      {{{"entries", "1"}}, "from 2 to 126"},
      {{{"entries", "127"}}, "from 2 to 126"},
      {{{"entries", "2x"}}, "entries=2x"},
      {{{"main", "0"}}, "from 1 to 4096"},
      {{{"main", "4097"}}, "from 1 to 4096"},
      {{{"segments", "0"}}, "segments=0"},
      {{{"segments", "3"}}, "a power of two"},
      {{{"segments", "131072"}}, "a power of two from 1 to 65536"},
      {{{"depth_bits", "0"}}, "from 1 to 4"},
      {{{"depth_bits", "5"}}, "from 1 to 4"},
      {{{"fptable", "sparse"}}, "fptable=sparse"},
      {{{"filter", "maybe"}}, "filter=maybe"},
      {{{"window", "127"}}, "from 0 to 126"},
      {{{"zero_wait", "1"}}, "zero_wait=1"},
      {{{"split_by", "keys"}}, "split_by=keys"},
      {{{"backoff_us", "0"}}, "backoff_us=0"},
      {{{"slots", "8"}}, "has no option 'slots'; it has entries"},
  };
  for (const auto& [options, text] : bad) {
    const Result<Options> parsed = Options::Parse(options);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message(), HasSubstr(text));
    EXPECT_FALSE(MakeSephashEngine(options).ok());
  }
}

TEST(SephashOptions, PagesFollowFromTheSizesOfSegments) {
  // Given tables with segments of any size When the size of their pages is computed Expect a power of two
  // from a line to 4 KiB; and at most 16 pages for the largest MainSegment with all that a merge can drop,
  // unless that is larger than 64 KiB
  for (uint32_t entries = 2; entries <= kMostEntries; ++entries) {
    for (uint32_t main = 1; main <= 4096; main = main * 3 / 2 + 1) {
      const Shape shape{.entries = entries, .main = main};
      const uint64_t bytes = shape.page_bytes();
      ASSERT_TRUE(std::has_single_bit(bytes) && bytes >= pool::kLine && bytes <= pool::kPage);
      const uint64_t words = shape.most_main_entries() + entries;
      if (words * sizeof(Entry) > Shape::kUsualPages * pool::kPage) continue;
      ASSERT_LE(shape.PagesOf(words), Shape::kUsualPages) << entries << ", " << main;
    }
  }
}

TEST(SephashOptions, AnEmptyTable_HasItsSpares) {
  // Given the default options
  // When the engine says how much memory an empty table takes on a node
  // Expect that of two spare MainSegments of 16 pages, and little more
  const uint64_t spares = 2 * (960 + 16 * 4096);
  const uint64_t bytes = (*MakeSephashEngine({}))->empty_bytes();
  EXPECT_EQ(bytes, sizeof(Root) + spares + 64 + 1024 + 960);
}

TEST(SephashOptions, StressOptionsAreValid) {
  // Given the options by which checkers stress the engine
  // When engines are made with them
  // Expect that each is taken
  const std::vector<OptionMap> stress = (*MakeSephashEngine({}))->stress_options();
  EXPECT_FALSE(stress.empty());
  for (const OptionMap& options : stress) EXPECT_TRUE(MakeSephashEngine(options).ok());
}

}  // namespace
}  // namespace farside::index::sephash
