#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/op.h"
#include "fabric/sim/timed/timed.h"
#include "tests/support/heap_count.h"

namespace farside::fabric::sim {
namespace {

FarAddr Line(uint64_t line, uint16_t node = 0) { return FarAddr(NodeId{node}, line * kLineBytes); }

// Every sort of trip, and pauses short and long.
Task<Done> SomeOfEverythingForever(Client& client, uint64_t number) {
  Op op(client, OpKind::kUpdate);
  const std::array<uint64_t, 100> block{};
  while (true) {
    co_await op.InOrder(Cas(Line(number), 0, 0), Read<std::array<uint64_t, 64>>(Line(number)));
    co_await op.InOrder(WriteObject(Line(number), block), Fenced(Faa(Line(number), 1)));
    co_await op.Together(Read<uint64_t>(Line(number, 0)), Read<uint64_t>(Line(number, 1)));
    op.Detach(Order::kInOrder, WriteObject(Line(number), block));
    co_await op.Pause(std::chrono::nanoseconds(100));
    co_await op.Pause(std::chrono::microseconds(50));
  }
}

// Given clients that do some of everything, for long enough to fill all pools. Expect that nothing is
// allocated any more.
TEST(TimedHeap, NothingIsAllocatedInASteadyState) {
  const auto world = std::move(*TimedFabric::Open({.region_bytes = {64 * 1024, 64 * 1024}}));
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Task<Done>> tasks;
  for (uint64_t i = 0; i < 50; ++i) {
    clients.push_back(std::move(*world->Connect()));
    tasks.push_back(SomeOfEverythingForever(*clients.back(), i));
    tasks.back().Start();
  }
  const auto run = [&world](uint64_t trips) {
    const uint64_t end = world->trips_posted() + trips;
    while (world->trips_posted() < end && world->Step()) continue;
  };
  run(50'000);
  const uint64_t before = HeapAllocations();
  run(5'000);
  const uint64_t after = HeapAllocations();
  EXPECT_EQ(after, before);
  tasks.clear();
  if (!kHeapIsCounted) GTEST_SKIP() << "the sanitizer owns operator new: allocations are not counted";
}

}  // namespace
}  // namespace farside::fabric::sim
