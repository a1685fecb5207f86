// What the operations of the reference table cost, counted by the fabric.
#include <gtest/gtest.h>

#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"

namespace farside::index::reference {
namespace {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::OpTally;

class ReferenceTrips : public testing::Test {
 protected:
  ReferenceTrips() : engine_(std::move(*MakeReferenceEngine({}))), world_(Options()) {
    client_ = std::move(*world_.Connect());
    table_ = engine_->Open(*client_);
  }

  fabric::sim::SimOptions Options() const {
    fabric::sim::SimOptions options;
    options.region_bytes = {engine_->region_bytes()};
    options.chaos = fabric::sim::Chaos::Calm();
    return options;
  }

  const OpTally& Tally(OpKind kind, OpOutcome outcome) { return client_->counters().at(kind, outcome); }

  std::unique_ptr<Engine> engine_;
  fabric::sim::SimFabric world_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<Index> table_;
};

TEST_F(ReferenceTrips, SearchIsOneTripAndAChangeIsTwo) {
  // Given an empty table and one client.
  // When a key is put, put again, read, deleted, deleted again and read again.
  // Expect one trip per search, two per change (also one that is refused), and each counted as what it became.
  const auto run = [&](OpKind kind, auto make_task) {
    Op op(*client_, kind);
    return *fabric::Run(*client_, make_task(op));
  };
  std::string value;
  EXPECT_TRUE(run(OpKind::kUpdate, [&](Op& op) { return table_->Put(op, "k", "v1"); }));
  EXPECT_FALSE(run(OpKind::kUpdate, [&](Op& op) { return table_->Put(op, "k", "v2"); }));
  EXPECT_TRUE(run(OpKind::kSearch, [&](Op& op) { return table_->Get(op, "k", value); }));
  EXPECT_EQ(value, "v2");
  EXPECT_TRUE(run(OpKind::kDelete, [&](Op& op) { return table_->Delete(op, "k"); }));
  EXPECT_FALSE(run(OpKind::kDelete, [&](Op& op) { return table_->Delete(op, "k"); }));
  EXPECT_FALSE(run(OpKind::kSearch, [&](Op& op) { return table_->Get(op, "k", value); }));

  for (const auto& [kind, outcome, trips] :
       {std::tuple(OpKind::kInsert, OpOutcome::kDone, 2), std::tuple(OpKind::kUpdate, OpOutcome::kDone, 2),
        std::tuple(OpKind::kSearch, OpOutcome::kDone, 1), std::tuple(OpKind::kDelete, OpOutcome::kDone, 2),
        std::tuple(OpKind::kDelete, OpOutcome::kRefused, 2), std::tuple(OpKind::kSearch, OpOutcome::kRefused, 1)}) {
    const OpTally& tally = Tally(kind, outcome);
    EXPECT_EQ(tally.operations, 1u) << Name(kind) << ' ' << Name(outcome);
    EXPECT_EQ(tally.index_trips, static_cast<uint64_t>(trips)) << Name(kind) << ' ' << Name(outcome);
    EXPECT_EQ(tally.end_to_end_trips, tally.index_trips);
    EXPECT_EQ(tally.retries, 0u);
  }
  EXPECT_EQ(Tally(OpKind::kSearch, OpOutcome::kDone).by_purpose[0].bytes_read, sizeof(Bucket));
}

}  // namespace
}  // namespace farside::index::reference
