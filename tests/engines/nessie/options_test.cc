// The options of a nessie table.
#include "index/nessie/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "index/nessie/nessie.h"

namespace farside::index::nessie {
namespace {

using testing::HasSubstr;

TEST(NessieOptions, NoneGiven_TheTableBeginsSmallAndGrows) {
  // Given no options When they are parsed Expect 64 slots, growth below the load that chains of 32 reach, and
  // sweeps
  const Result<Options> options = Options::Parse({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->shape, (Shape{.initial_bits = 6}));
  EXPECT_TRUE(options->grow);
  EXPECT_DOUBLE_EQ(options->max_load, 0.42);
  EXPECT_DOUBLE_EQ(options->head_start, 0.05);
  EXPECT_DOUBLE_EQ(options->alpha, 0.1);
  EXPECT_EQ(options->burst, 16u);
  EXPECT_EQ(options->chain, 32u);
  EXPECT_EQ(options->sweep, 3u);
  EXPECT_EQ(options->backoff, std::chrono::microseconds(2));
}

TEST(NessieOptions, AllGiven_AllAreTaken) {
  // Given every option with a value that is not its default
  // When they are parsed
  // Expect these values
  const Result<Options> options = Options::Parse({{"slots", "1024"},
                                                  {"grow", "no"},
                                                  {"max_load", "0.3"},
                                                  {"head_start", "0.1"},
                                                  {"alpha", "2"},
                                                  {"burst", "3"},
                                                  {"chain", "1"},
                                                  {"sweep", "0"},
                                                  {"backoff_us", "7"}});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->shape, (Shape{.initial_bits = 10}));
  EXPECT_FALSE(options->grow);
  EXPECT_DOUBLE_EQ(options->max_load, 0.3);
  EXPECT_DOUBLE_EQ(options->head_start, 0.1);
  EXPECT_DOUBLE_EQ(options->alpha, 2);
  EXPECT_EQ(options->burst, 3u);
  EXPECT_EQ(options->chain, 1u);
  EXPECT_EQ(options->sweep, 0u);
  EXPECT_EQ(options->backoff, std::chrono::microseconds(7));
}

TEST(NessieOptions, OnlyThoseThatChangeBytesAreRecorded) {
  // Given options of the table and options of a client
  // When the table records them
  // Expect the number of slots, also where it is the default, and none of the client's
  const Result<Options> options = Options::Parse({{"slots", "16"}, {"chain", "4"}, {"grow", "no"}});
  EXPECT_EQ(options->Recorded(), (OptionMap{{"slots", "16"}}));
  EXPECT_EQ(Options::Parse(options->Recorded())->shape, options->shape);
  EXPECT_EQ(Options().Recorded(), (OptionMap{{"slots", "64"}}));
}

TEST(NessieOptions, BadOnesAreRefusedWithTheirNames) {
  // Given a value that an option cannot have, or an option that there is not
  // When it is parsed, or an engine is made with it
  // Expect kInvalidArgument with a text that says what was wrong
  const std::vector<std::pair<OptionMap, std::string>> bad = {
      {{{"slots", "0"}}, "slots=0"},
      {{{"slots", "2"}}, "a power of two from 4"},
      {{{"slots", "48"}}, "a power of two"},
      {{{"slots", "2147483648"}}, "a power of two"},
      {{{"slots", "64x"}}, "slots=64x"},
      {{{"grow", "maybe"}}, "grow=maybe"},
      {{{"max_load", "0"}}, "max_load=0"},
      {{{"max_load", "1.1"}}, "max_load=1.1"},
      {{{"head_start", "0.6"}}, "head_start=0.6"},
      {{{"alpha", "0"}}, "alpha=0"},
      {{{"burst", "-1"}}, "burst=-1"},
      {{{"chain", "65"}}, "from 0 to 64"},
      {{{"sweep", "9"}}, "from 0 to 8"},
      {{{"backoff_us", "0"}}, "backoff_us=0"},
      {{{"buckets", "8"}}, "has no option 'buckets'; it has slots"},
  };
  for (const auto& [options, text] : bad) {
    const Result<Options> parsed = Options::Parse(options);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message(), HasSubstr(text));
    EXPECT_FALSE(MakeNessieEngine(options).ok());
  }
}

TEST(NessieOptions, AnEmptyTable_HasItsRootAndSlots) {
  // Given numbers of slots
  // When the engine says how much memory an empty table takes on a node
  // Expect the root, and 8 bytes for each slot in whole lines
  EXPECT_EQ((*MakeNessieEngine({}))->empty_bytes(), sizeof(TableRoot) + 64 * 8);
  EXPECT_EQ((*MakeNessieEngine({{"slots", "4"}}))->empty_bytes(), sizeof(TableRoot) + 64);
  EXPECT_EQ((*MakeNessieEngine({{"slots", "1048576"}}))->empty_bytes(), sizeof(TableRoot) + (8 << 20));
}

TEST(NessieOptions, StressOptionsAreValid) {
  // Given the options by which checkers stress the engine
  // When engines are made with them
  // Expect that each is taken
  const std::vector<OptionMap> stress = (*MakeNessieEngine({}))->stress_options();
  EXPECT_FALSE(stress.empty());
  for (const OptionMap& options : stress) EXPECT_TRUE(MakeNessieEngine(options).ok());
}

}  // namespace
}  // namespace farside::index::nessie
