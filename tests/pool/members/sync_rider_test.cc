// Riders of a sync: what each adds and reads, however many there are, and what a sync allocates.
#include "pool/members/sync_rider.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "tests/pool/memory/allocator_session.h"
#include "tests/support/heap_count.h"

namespace farside::pool {
namespace {

using fabric::embedded::EmbeddedFabric;

constexpr size_t kRiders = 20;  // more than go in two trips

// Adds 1 to the first word of its line each time, and remembers what it has read there.
class CountingRider final : public SyncRider {
 public:
  explicit CountingRider(uint64_t line_at) : line_at_(line_at) {}
  void Missed() override {}
  Ride Board() override { return {.add_at = line_at_, .delta = 1, .read_at = line_at_}; }
  void Arrive(std::span<const std::byte, kLine> line) override {
    ++arrivals;
    std::memcpy(&read, line.data(), sizeof read);
    if (closing != nullptr) closing->clear();
  }

  int arrivals = 0;
  uint64_t read = 0;
  Riders* closing = nullptr;  // riders that leave when this one arrives

 private:
  const uint64_t line_at_;
};

class SyncRiderTest : public testing::Test {
 protected:
  static constexpr uint64_t kChunkBytes = 64 << 10;

  SyncRiderTest() {
    const fabric::FarAddr lines = session_.Allocate(kRiders * kLine);
    const std::vector<std::byte> zero(kRiders * kLine);
    session_.Run([&](fabric::Op& op) { return Clear(op, lines, zero); });
    for (size_t i = 0; i < kRiders; ++i) {
      all_.push_back(std::make_shared<CountingRider>(lines.offset + i * kLine));
      riders_.push_back(all_.back());
    }
  }
  static Task<Done> Clear(fabric::Op& op, fabric::FarAddr at, std::span<const std::byte> zero) {
    co_await op.InOrder(fabric::Write(at, zero));
    co_return Done{};
  }
  Task<Done> Sync(fabric::Op& op) {
    const uint64_t known = session_.membership.known_epoch();
    return session_.membership.Sync(op, known, known, /*raise=*/true, riders_);
  }
  void SyncOnce() {
    session_.Run([this](fabric::Op& op) { return Sync(op); });
  }

  const Geometry geometry_ = GeometryOfChunks(4, kChunkBytes);
  std::unique_ptr<EmbeddedFabric> fabric_ =
      std::move(*EmbeddedFabric::Open({.region_bytes = {geometry_.region_bytes}}));
  AllocatorSession session_{*fabric_, geometry_};
  std::vector<std::shared_ptr<CountingRider>> all_;
  Riders riders_;
};

TEST_F(SyncRiderTest, MoreRidersThanATripTakes_EachAddsAndReadsItsOwnLine) {
  // Given riders for three trips. When syncs take them along. Expect that each has added, and read what it added.
  for (uint64_t sync = 1; sync <= 3; ++sync) {
    SyncOnce();
    for (const auto& rider : all_) {
      EXPECT_EQ(rider->arrivals, static_cast<int>(sync));
      EXPECT_EQ(rider->read, sync);
    }
  }
}

TEST_F(SyncRiderTest, RidersLeaveWhileASyncIsUnderWay_NoneIsPassedOver) {
  // Given riders for three trips. When all of them are taken from the list as the first one arrives. Expect that all
  // arrive all the same, and that nobody keeps them afterwards.
  all_[0]->closing = &riders_;
  SyncOnce();
  EXPECT_TRUE(riders_.empty());
  for (const auto& rider : all_) {
    EXPECT_EQ(rider->arrivals, 1);
    EXPECT_EQ(rider.use_count(), 1);
  }
}

TEST_F(SyncRiderTest, TwoSyncsAtOnce_TakeAllRidersTwice) {
  // Given two operations of one client. When they sync at the same time. Expect that every rider goes with both.
  fabric::Op op(session_.client(), fabric::OpKind::kMaintenance);
  std::vector<Task<Done>> tasks;
  tasks.push_back(Sync(op));
  tasks.push_back(Sync(op));
  ASSERT_TRUE(fabric::RunAll<Done>(session_.client(), tasks).ok());
  for (Task<Done>& task : tasks) EXPECT_TRUE(task.TakeResult().ok());
  for (const auto& rider : all_) {
    EXPECT_EQ(rider->arrivals, 2);
    EXPECT_EQ(rider->read, 2u);
  }
}

TEST_F(SyncRiderTest, SyncsInASteadyState_AllocateNothing) {
  // Given a client that has synced before. When it syncs, looks around and settles. Expect nothing from the heap.
  const auto round = [this] {
    SyncOnce();
    session_.Sync();
  };
  for (int i = 0; i < 20; ++i) round();
  const uint64_t before = HeapAllocations();
  for (int i = 0; i < 20; ++i) round();
  if (kHeapIsCounted) {
    EXPECT_EQ(HeapAllocations() - before, 0u);
  }
}

}  // namespace
}  // namespace farside::pool
