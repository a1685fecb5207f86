// What the operations of `raw` cost, counted by the fabric: exactly what a perfect index would, or it is no
// yardstick.
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/raw/raw.h"
#include "pool/fsck/fsck.h"
#include "pool/region/superblock.h"
#include "store/registration.h"

namespace farside::index::raw {
namespace {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::OpTally;
using fabric::Purpose;
using fabric::VerbKind;

const OptionMap kOptions = {{"records", "16"}, {"bucket", "512"}, {"block", "128"}};

class RawTrips : public testing::Test {
 protected:
  RawTrips() : world_({.region_bytes = {512 * 1024}, .chaos = fabric::sim::Chaos::Calm()}) {
    EXPECT_TRUE(pool::FormatVolatile(world_.memory(fabric::NodeId{0}), {.chunk_bytes = 4096}, {1, 2}).ok());
    client_ = std::move(*world_.Connect());
    EXPECT_TRUE(fabric::Run(*client_, JoinWithTable()).ok());
  }

  Task<Done> JoinWithTable() {
    Op op(*client_, OpKind::kMaintenance);
    const auto find = [](std::string_view, const OptionMap& options) { return MakeRawEngine(options); };
    session_ = co_await store::Registration::Join(op, *client_, find, {});
    table_ = std::make_unique<OpenTable>(co_await session_->tables().CreateOrOpen(op, "t", "raw", kOptions));
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
    co_return Done{};
  }

  // The outcome of one operation, and what it took.
  template <class MakeTask>
  OpTally Cost(MakeTask make_task) {
    Op op(*client_, OpKind::kSearch);
    const auto outcome = fabric::Run(*client_, make_task(op));
    EXPECT_TRUE(outcome.ok()) << outcome.error().ToString();
    return op.tally();
  }
  static uint64_t Verbs(const OpTally& tally, Purpose purpose, VerbKind kind) {
    return tally.by_purpose[static_cast<size_t>(purpose)].verbs[static_cast<size_t>(kind)];
  }
  static uint64_t BytesRead(const OpTally& tally, Purpose purpose) {
    return tally.by_purpose[static_cast<size_t>(purpose)].bytes_read;
  }

  Index& table() { return *table_->index; }

  fabric::sim::SimFabric world_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Registration> session_;
  std::unique_ptr<OpenTable> table_;
  std::string value_;
};

TEST_F(RawTrips, Search_BucketThenBlock) {
  // Given buckets of 512 bytes and blocks of 128. When a key is searched. Expect a trip for each, and those
  // bytes.
  const OpTally tally = Cost([&](Op& op) { return table().Get(op, "k", value_); });
  EXPECT_EQ(tally.index_trips, 1u);
  EXPECT_EQ(tally.end_to_end_trips, 2u);
  EXPECT_EQ(BytesRead(tally, Purpose::kIndex), 512u);
  EXPECT_EQ(BytesRead(tally, Purpose::kBlock), 128u);
  EXPECT_EQ(tally.Verbs(), 2u);
}

TEST_F(RawTrips, Search_InOneTrip_IfTheBlockIsKnown) {
  // Given a client with trips=1. When a key is searched. Expect the same verbs in one trip.
  OptionMap options = kOptions;
  options["trips"] = "1";
  const auto engine = *MakeRawEngine(options);
  const std::unique_ptr<Index> warm = engine->Open(session_->pool(), table_->info.roots);
  const OpTally tally = Cost([&](Op& op) { return warm->Get(op, "k", value_); });
  EXPECT_EQ(tally.end_to_end_trips, 1u);
  EXPECT_EQ(tally.Verbs(), 2u);
}

TEST_F(RawTrips, Insert_WriteAndRead_ThenCas) {
  // When a key is inserted. Expect the block and the bucket in one trip, and a CAS, which succeeds.
  const OpTally tally = Cost([&](Op& op) { return table().Insert(op, "k", "v"); });
  EXPECT_EQ(tally.end_to_end_trips, 2u);
  EXPECT_EQ(tally.index_trips, 2u);
  EXPECT_EQ(Verbs(tally, Purpose::kBlock, VerbKind::kWrite), 1u);
  EXPECT_EQ(Verbs(tally, Purpose::kIndex, VerbKind::kRead), 1u);
  EXPECT_EQ(Verbs(tally, Purpose::kIndex, VerbKind::kCas), 1u);
  EXPECT_EQ(tally.by_purpose[static_cast<size_t>(Purpose::kIndex)].failed_cas, 0u);
}

TEST_F(RawTrips, Update_AndDelete_ReadTheBlockInBetween) {
  // When a key is updated, and then deleted. Expect three trips each; a delete writes no block.
  const OpTally update = Cost([&](Op& op) { return table().Update(op, "k", "v"); });
  EXPECT_EQ(update.end_to_end_trips, 3u);
  EXPECT_EQ(update.index_trips, 2u);
  EXPECT_EQ(Verbs(update, Purpose::kBlock, VerbKind::kWrite), 1u);
  EXPECT_EQ(Verbs(update, Purpose::kBlock, VerbKind::kRead), 1u);
  const OpTally deleted = Cost([&](Op& op) { return table().Delete(op, "k"); });
  EXPECT_EQ(deleted.end_to_end_trips, 3u);
  EXPECT_EQ(Verbs(deleted, Purpose::kBlock, VerbKind::kWrite), 0u);
  EXPECT_EQ(Verbs(deleted, Purpose::kIndex, VerbKind::kCas), 1u);
}

TEST_F(RawTrips, WhatIsReadIsWhatWasWrittenIntoTheSlot) {
  // Given a key that was inserted, with no other in its slot. When it is read. Expect its value: the bytes do
  // travel.
  Cost([&](Op& op) { return table().Insert(op, "k", "a value"); });
  Cost([&](Op& op) { return table().Get(op, "k", value_); });
  EXPECT_EQ(value_, "a value");
}

TEST_F(RawTrips, ItsMemoryIsMarked_AndADropFreesIt) {
  // Given a table. When it is walked, counted and verified, and then dropped. Expect every byte of its slots,
  // and that nothing of it is left.
  struct Sum final : pool::Reach {
    void Mark(fabric::FarAddr, uint64_t marked) override { bytes += marked; }
    uint64_t bytes = 0;
  } sum;
  Cost([&](Op& op) { return table().Walk(op, sum); });
  EXPECT_EQ(sum.bytes, 16u * (512 + 128));
  Cost([&](Op& op) { return table().Verify(op); });
  Op op(*client_, OpKind::kMaintenance);
  const Result<TableStats> stats = fabric::Run(*client_, table().Stats(op));
  EXPECT_EQ(stats->index_bytes + stats->block_bytes, sum.bytes);
  EXPECT_EQ(stats->slots, 16u);
  Cursor cursor;
  std::vector<Record> page;
  EXPECT_FALSE(*fabric::Run(*client_, table().Next(op, cursor, page)));
  table_.reset();
  EXPECT_TRUE(fabric::Run(*client_, session_->tables().Drop(op, "t")).ok());
  pool::Reached nothing;
  EXPECT_TRUE(fabric::Run(*client_, session_->tables().Walk(op, nothing)).ok());
}

TEST_F(RawTrips, WhatNeedsAMemory_IsRefused) {
  // When raw is asked to compare or to count, or gets a value that does not fit. Expect an error, and no
  // verbs.
  Op op(*client_, OpKind::kUpdate);
  EXPECT_EQ(fabric::Run(*client_, table().CompareAndSet(op, "k", "a", "b")).error().code(),
            ErrorCode::kUnsupported);
  EXPECT_EQ(fabric::Run(*client_, table().Increment(op, "k", 1)).error().code(), ErrorCode::kUnsupported);
  const std::string large(200, 'x');
  EXPECT_EQ(fabric::Run(*client_, table().Insert(op, "k", large)).error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(op.tally().Verbs(), 0u);
}

TEST(RawOptions, BadOnesAreNamed) {
  // Given options that make no sense. Expect an error that shows the option.
  for (const OptionMap& bad :
       {OptionMap{{"records", "0"}}, OptionMap{{"bucket", "63"}}, OptionMap{{"bucket", "8192"}},
        OptionMap{{"block", "65"}}, OptionMap{{"trips", "3"}}, OptionMap{{"trips", "x"}},
        OptionMap{{"nosuch", "1"}}}) {
    const auto engine = MakeRawEngine(bad);
    ASSERT_FALSE(engine.ok());
    EXPECT_NE(engine.error().message().find(bad.begin()->first), std::string::npos)
        << engine.error().message();
  }
}

}  // namespace
}  // namespace farside::index::raw
