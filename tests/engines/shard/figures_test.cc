// What shard promises, as counts: round trips per operation and where records are. `farside paper
// shard-table3` shows the same figures beside those of the paper.
#include <cstdint>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tools/paper/bench_figures.h"
#include "tools/paper/trips.h"

namespace farside::tools::paper {
namespace {

constexpr uint64_t kRecords = 200'000;

void NoProgress(std::string_view, uint64_t, uint64_t, std::string_view) {}

Result<TripFigures> Trips(index::OptionMap options) {
  return MeasureTrips({.engine = "shard", .options = std::move(options), .records = kRecords}, NoProgress);
}

TEST(ShardFigures, TripsOfEveryKindOfOperationStayInTheirLimits) {
  // Given a table that is filled from empty, through all its resizes. When every record is searched and
  // updated, and every second one is deleted. Expect the trips that the engine promises.
  const Result<TripFigures> figures = Trips({});
  ASSERT_TRUE(figures.ok()) << figures.error().ToString();
  EXPECT_EQ(figures->insert.operations, kRecords);
  EXPECT_EQ(figures->search.operations, kRecords);
  EXPECT_EQ(figures->update.operations, kRecords);
  EXPECT_EQ(figures->erase.operations, kRecords / 2);
  EXPECT_GE(Detail(figures->loaded, "resizes"), 10);

  EXPECT_LE(figures->search.index, 1.05);
  EXPECT_LE(figures->update.index, 2.05);
  EXPECT_LE(figures->erase.index, 2.05);
  EXPECT_LE(figures->insert.index, 2.30);
  EXPECT_LE(figures->search.end_to_end, 2.05);
  EXPECT_LE(figures->insert.end_to_end, 2.35);
  EXPECT_LE(figures->update.end_to_end, 3.05);
}

TEST(ShardFigures, ASearchOfAnAbsentKeyMostlyStopsInLevel1) {
  // Given a table that has doubled again and again. When keys are searched that are not there. Expect that
  // many of their buckets say that nothing has overflowed, however many ancestors of them did.
  const Result<TripFigures> figures = Trips({});
  ASSERT_TRUE(figures.ok()) << figures.error().ToString();
  EXPECT_EQ(figures->absent.operations, kRecords);
  EXPECT_LE(figures->absent.index, 1.75);
}

TEST(ShardFigures, ARepeatedSearchTakesOneTripWithTheLocationCache) {
  // Given a location cache with room for every record. When each is searched twice in a row. Expect one trip
  // for the second search, for the index and the block together.
  const Result<TripFigures> figures = Trips({{"cache", std::to_string(2 * kRecords)}});
  ASSERT_TRUE(figures.ok()) << figures.error().ToString();
  EXPECT_EQ(figures->repeated_search.operations, kRecords);
  EXPECT_LE(figures->repeated_search.end_to_end, 1.01);
}

TEST(ShardFigures, NearlyAllRecordsAreInLevel1AtTheLoadThatResizes) {
  // Given 2,048 buckets that are not resized. When they are filled to a load of 0.8. Expect more than 97 % of
  // the records in level 1, and no resize.
  BenchCommand command;
  command.engine = "shard";
  command.workload = "load";
  command.options = {{"buckets", "2048"}, {"max_load", "0.95"}};
  command.records = 2048 * 72 * 8 / 10;
  const Result<BenchRun> run = Measure(command, {.progress = NoProgress});
  ASSERT_TRUE(run.ok()) << run.error().ToString();
  EXPECT_EQ(Detail(run->stats, "resizes"), 0);
  EXPECT_NEAR(Detail(run->stats, "load"), 0.8, 0.001);
  EXPECT_GT(Detail(run->stats, "share in level 1"), 0.97);
  EXPECT_LT(Detail(run->stats, "directory bytes"), 1024);
}

}  // namespace
}  // namespace farside::tools::paper
