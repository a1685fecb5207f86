// Every engine in a pool whose free memory lies in sparse chunks of other sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/engines/conformance/engine.h"
#include "tests/support/live_records.h"

namespace farside::conformance {
namespace {

class EvacuationTest : public testing::TestWithParam<EngineUnderTest> {
 protected:
  EvacuationTest() : pool_(Must(Pool::Open("embedded:?size=32MiB"))), session_(Must(pool_.NewSession())) {}

  // With as few buckets as take so many records, if the engine does not grow.
  void MakeTable(uint64_t records) {
    const index::OptionMap options = Must(GetParam().make({}))->OptionsFor({.records = records});
    table_ = Must(pool_.CreateTable("t", {.engine = GetParam().engine, .options = options}));
    records_.Use(session_, *table_);
  }

  Pool pool_;
  std::optional<Table> table_;
  Session session_;
  LiveRecords records_{32.0 * 1024 * 1024};
};
INSTANTIATE_TEST_SUITE_P(Engines, EvacuationTest, testing::ValuesIn(RoomyEngines()), LabelOf);

TEST_P(EvacuationTest, SmallRecordsFollowLargeOnes_ThePoolIsFilledAgain) {
  // Given a pool that was filled with values of 4,000 bytes, of which 85 % were deleted at random: every
  // chunk holds a few of them.
  MakeTable(28'000);
  records_.PutUntilFull(4000);
  records_.DeleteAllBut(0.15);
  EXPECT_LT(records_.live_share(), 0.15);
  // When values of 500 bytes are put until the pool is full.
  records_.PutUntilFull(500);
  // Expect that nearly all of it is in use, and that every record is there.
  EXPECT_GE(records_.live_share(), 0.8);
  records_.ExpectAll();
}

TEST_P(EvacuationTest, ChurnOfMixedSizes_NeverFindsThePoolFull) {
  // Given a pool of which 70 % are live, in records of 16 to 60,000 bytes, small ones as often as large ones.
  // When records are put, and others deleted to make room for them, ten times as many as the pool has bytes.
  // Expect that no put fails, and that every record is there.
  //
  // It is nearly all that fits: a third of each chunk of a value of more than half a chunk is unused. The
  // index of nessie is in blocks of six sizes, in a chunk each.
  MakeTable(5'000);
  const double most_live = GetParam().engine == "nessie" ? 0.68 : 0.7;
  records_.Churn(/*pools=*/10, most_live, /*largest=*/60'000);
  records_.ExpectAll();
}

TEST_P(EvacuationTest, ANewTableNeedsRoom_SparseChunksOfOthersAreEmptied) {
  // Given a pool that was filled with values of 4,000 bytes, of which 85 % were deleted at random.
  MakeTable(28'000);
  records_.PutUntilFull(4000);
  records_.DeleteAllBut(0.15);
  // When a table for many records is made, dropped, and made again.
  // Expect that there is room for it each time, and that every record is there.
  const index::OptionMap options = Must(GetParam().make({}))->OptionsFor({.records = 50'000});
  for (int round = 0; round < 3; ++round) {
    const Result<Table> made = pool_.CreateTable("second", {.engine = GetParam().engine, .options = options});
    ASSERT_TRUE(made.ok()) << made.error().ToString();
    ASSERT_TRUE(session_.Put(*made, "key", "value").ok());
    const Status dropped = pool_.DropTable("second");
    ASSERT_TRUE(dropped.ok()) << dropped.error().ToString();
  }
  records_.ExpectAll();
}

}  // namespace
}  // namespace farside::conformance
