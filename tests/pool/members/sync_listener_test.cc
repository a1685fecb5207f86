// SyncListeners of a sync: what each adds and reads, however many there are, and what a sync allocates.
#include "pool/members/sync_listener.h"

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

constexpr size_t kListeners = 20;  // more than go in two trips

// Adds 1 to the first word of its line each time, and remembers what it has read there.
class CountingListener final : public SyncListener {
 public:
  explicit CountingListener(uint64_t line_at) : line_at_(line_at) {}
  void MissedSync() override {}
  SyncRequest BeforeSync(bool /*may_add*/) override {
    return {.add_at = line_at_, .delta = 1, .read_at = line_at_};
  }
  void AfterSync(std::span<const std::byte, kLine> line) override {
    ++arrivals;
    std::memcpy(&read, line.data(), sizeof read);
    if (closing != nullptr) closing->clear();
  }

  int arrivals = 0;
  uint64_t read = 0;
  SyncListeners* closing = nullptr;  // listeners that leave when this one arrives

 private:
  const uint64_t line_at_;
};

class SyncListenerTest : public testing::Test {
 protected:
  static constexpr uint64_t kChunkBytes = 64 << 10;

  SyncListenerTest() {
    const fabric::FarAddr lines = session_.Allocate(kListeners * kLine);
    const std::vector<std::byte> zero(kListeners * kLine);
    session_.Run([&](fabric::Op& op) { return Clear(op, lines, zero); });
    for (size_t i = 0; i < kListeners; ++i) {
      all_.push_back(std::make_shared<CountingListener>(lines.offset + i * kLine));
      listeners_.push_back(all_.back());
    }
  }
  static Task<Done> Clear(fabric::Op& op, fabric::FarAddr at, std::span<const std::byte> zero) {
    co_await op.InOrder(fabric::Write(at, zero));
    co_return Done{};
  }
  Task<Done> Sync(fabric::Op& op) {
    const uint64_t known = session_.membership.known_epoch();
    return session_.membership.Sync(op, known, known, /*raise=*/true, listeners_);
  }
  void SyncOnce() {
    session_.Run([this](fabric::Op& op) { return Sync(op); });
  }

  const Geometry geometry_ = GeometryOfChunks(4, kChunkBytes);
  std::unique_ptr<EmbeddedFabric> fabric_ =
      std::move(*EmbeddedFabric::Open({.region_bytes = {geometry_.region_bytes}}));
  AllocatorSession session_{*fabric_, geometry_};
  std::vector<std::shared_ptr<CountingListener>> all_;
  SyncListeners listeners_;
};

TEST_F(SyncListenerTest, MoreListenersThanATripTakes_EachAddsAndReadsItsOwnLine) {
  // Given listeners for three trips. When syncs take them along. Expect that each has added, and read what it
  // added.
  for (uint64_t sync = 1; sync <= 3; ++sync) {
    SyncOnce();
    for (const auto& listener : all_) {
      EXPECT_EQ(listener->arrivals, static_cast<int>(sync));
      EXPECT_EQ(listener->read, sync);
    }
  }
}

TEST_F(SyncListenerTest, ListenersLeaveWhileASyncIsUnderWay_NoneIsPassedOver) {
  // Given listeners for three trips. When all of them are taken from the list as the first one arrives.
  // Expect that all arrive all the same, and that no client keeps them afterwards.
  all_[0]->closing = &listeners_;
  SyncOnce();
  EXPECT_TRUE(listeners_.empty());
  for (const auto& listener : all_) {
    EXPECT_EQ(listener->arrivals, 1);
    EXPECT_EQ(listener.use_count(), 1);
  }
}

TEST_F(SyncListenerTest, TwoSyncsAtOnce_CallAllListenersTwice) {
  // Given two operations of one client. When they sync at the same time. Expect that every listener goes with
  // both.
  fabric::Op op(session_.client(), fabric::OpKind::kMaintenance);
  std::vector<Task<Done>> tasks;
  tasks.push_back(Sync(op));
  tasks.push_back(Sync(op));
  ASSERT_TRUE(fabric::RunAll<Done>(session_.client(), tasks).ok());
  for (Task<Done>& task : tasks) EXPECT_TRUE(task.TakeResult().ok());
  for (const auto& listener : all_) {
    EXPECT_EQ(listener->arrivals, 2);
    EXPECT_EQ(listener->read, 2u);
  }
}

TEST_F(SyncListenerTest, SyncsInASteadyState_AllocateNothing) {
  // Given a client that has synced before. When it syncs, looks around and settles. Expect nothing from the
  // heap.
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
