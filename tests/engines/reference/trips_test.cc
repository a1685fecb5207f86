// What the operations of the reference table cost, counted by the fabric.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"
#include "pool/region/superblock.h"
#include "store/registration.h"

namespace farside::index::reference {
namespace {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::OpTally;

class ReferenceTrips : public testing::Test {
 protected:
  ReferenceTrips() : world_({.region_bytes = {512 * 1024}, .chaos = fabric::sim::Chaos::Calm()}) {
    EXPECT_TRUE(pool::FormatVolatile(world_.memory(fabric::NodeId{0}), {.chunk_bytes = 4096}, {1, 2}).ok());
    client_ = std::move(*world_.Connect());
    EXPECT_TRUE(fabric::Run(*client_, JoinWithTable()).ok());
  }

  Task<Done> JoinWithTable() {
    Op op(*client_, OpKind::kMaintenance);
    const auto find = [](std::string_view, const OptionMap& options) { return MakeReferenceEngine(options); };
    session_ = co_await store::Registration::Join(op, *client_, find, {});
    table_ = std::make_unique<OpenTable>(co_await session_->tables().CreateOrOpen(op, "t", "reference", {}));
    // Claims a chunk, so that what follows is the steady state.
    co_await table_->index->Put(op, "first", "v");
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
    co_return Done{};
  }

  const OpTally& Tally(OpKind kind, OpOutcome outcome) { return client_->counters().at(kind, outcome); }

  fabric::sim::SimFabric world_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Registration> session_;
  std::unique_ptr<OpenTable> table_;
};

TEST_F(ReferenceTrips, BucketAndBlock_LockAndCommit) {
  // Given an empty table and one client. When a key is put, put again, inserted, read, deleted, deleted again
  // and read again. Expect one index trip per search and two per change (also one that is refused), a further
  // trip where a block is read, and each operation counted as what it became.
  const auto run = [&](OpKind kind, auto make_task) {
    Op op(*client_, kind);
    return *fabric::Run(*client_, make_task(op));
  };
  std::string value;
  run(OpKind::kUpdate, [&](Op& op) { return table_->index->Put(op, "k", "v1"); });
  run(OpKind::kUpdate, [&](Op& op) { return table_->index->Put(op, "k", "v2"); });
  EXPECT_FALSE(run(OpKind::kInsert, [&](Op& op) { return table_->index->Insert(op, "k", "v3"); }));
  EXPECT_TRUE(run(OpKind::kSearch, [&](Op& op) { return table_->index->Get(op, "k", value); }));
  EXPECT_EQ(value, "v2");
  EXPECT_TRUE(run(OpKind::kDelete, [&](Op& op) { return table_->index->Delete(op, "k"); }));
  EXPECT_FALSE(run(OpKind::kDelete, [&](Op& op) { return table_->index->Delete(op, "k"); }));
  EXPECT_FALSE(run(OpKind::kSearch, [&](Op& op) { return table_->index->Get(op, "k", value); }));

  struct Expected {
    OpKind kind;
    OpOutcome outcome;
    uint64_t index_trips;
    uint64_t end_to_end_trips;
  };
  for (const Expected& expected :
       {Expected{OpKind::kInsert, OpOutcome::kDone, 2, 2}, Expected{OpKind::kUpdate, OpOutcome::kDone, 2, 3},
        Expected{OpKind::kSearch, OpOutcome::kDone, 1, 2}, Expected{OpKind::kDelete, OpOutcome::kDone, 2, 3},
        Expected{OpKind::kDelete, OpOutcome::kRefused, 2, 2},
        Expected{OpKind::kInsert, OpOutcome::kRefused, 2, 3},
        Expected{OpKind::kSearch, OpOutcome::kRefused, 1, 1}}) {
    const OpTally& tally = Tally(expected.kind, expected.outcome);
    const std::string what = fmt::format("{} {}", Name(expected.kind), Name(expected.outcome));
    EXPECT_EQ(tally.operations, 1u) << what;
    EXPECT_EQ(tally.index_trips, expected.index_trips) << what;
    EXPECT_EQ(tally.end_to_end_trips, expected.end_to_end_trips) << what;
    EXPECT_EQ(tally.retries, 0u) << what;
  }
  EXPECT_EQ(Tally(OpKind::kSearch, OpOutcome::kDone).by_purpose[0].bytes_read, sizeof(Bucket));
}

TEST_F(ReferenceTrips, AScan_ReadsEveryBucketAndEveryRecord) {
  // Given a table of four buckets with three records.
  // When one record of a range is scanned, the last one is asked for, and a range without any.
  // Expect a trip for each bucket and one for each record, whatever was asked for, and three scans.
  const auto run = [&](auto make_task) {
    Op op(*client_, OpKind::kScan);
    return *fabric::Run(*client_, make_task(op));
  };
  for (const char* key : {"a", "b"}) {
    Op op(*client_, OpKind::kUpdate);
    EXPECT_TRUE(fabric::Run(*client_, table_->index->Put(op, key, "v")).ok());
  }
  const KeyRange all;
  const KeyRange none = KeyRange::From("zzz");
  std::vector<Record> page;
  Record last;
  EXPECT_TRUE(run([&](Op& op) { return table_->index->Scan(op, all, 1, page); }));
  EXPECT_EQ(page, (std::vector<Record>{{"a", "v"}}));
  EXPECT_TRUE(run([&](Op& op) { return table_->index->Last(op, all, last); }));
  EXPECT_EQ(last.key, "first");
  EXPECT_FALSE(run([&](Op& op) { return table_->index->Last(op, none, last); }));
  const OpTally& done = Tally(OpKind::kScan, OpOutcome::kDone);
  EXPECT_EQ(done.operations, 2u);
  EXPECT_EQ(done.index_trips, 2u * 4);
  EXPECT_EQ(done.end_to_end_trips, 2u * (4 + 3));
  const OpTally& nothing = Tally(OpKind::kScan, OpOutcome::kRefused);
  EXPECT_EQ(nothing.operations, 1u);
  EXPECT_EQ(nothing.end_to_end_trips, 4u + 3);
}

}  // namespace
}  // namespace farside::index::reference
