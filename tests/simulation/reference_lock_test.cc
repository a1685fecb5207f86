// The lock of a bucket of the reference table: takeovers with several operations in flight, and no takeover without need.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"

namespace farside::index::reference {
namespace {

using fabric::Client;
using fabric::Op;
using fabric::OpKind;
using fabric::sim::Chaos;
using fabric::sim::Fault;
using fabric::sim::FaultKind;
using fabric::sim::SimClient;
using fabric::sim::SimFabric;

Task<bool> Put(Client& client, Index& table, std::string key, std::string value) {
  Op op(client, OpKind::kInsert);
  co_return co_await table.Put(op, key, value);
}

Task<std::string> Get(Client& client, Index& table, std::string key) {
  Op op(client, OpKind::kSearch);
  std::string value;
  const bool found = co_await table.Get(op, key, value);
  co_return found ? value : std::string("absent");
}

TEST(ReferenceLock, TwoOperationsOfOneClientMeetADeadOwner_OnlyOneTakesOver) {
  // Given a bucket whose owner died with the lock
  // When one client runs two puts on it at once, over many seeds
  // Expect that both succeed and are found: each takes the lock for itself, not for its client
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    ReferenceEngine engine(Options{.buckets = 1});
    SimFabric world({.seed = seed,
                     .region_bytes = {engine.region_bytes()},
                     .chaos = Chaos::ForSeed(seed, false),
                     .fault = Fault{0, FaultKind::kCrashAfter}});
    {
      const auto dead = std::move(*world.Connect());
      const auto table = engine.Open(*dead);
      Task<bool> put = Put(*dead, *table, "d", "dead");
      put.Start();
      while (!static_cast<SimClient&>(*dead).crashed() && world.Step()) continue;
    }
    const auto client = std::move(*world.Connect());
    const auto table = engine.Open(*client);
    std::vector<Task<bool>> puts;
    puts.push_back(Put(*client, *table, "a", "1"));
    puts.push_back(Put(*client, *table, "b", "2"));
    ASSERT_TRUE(fabric::RunAll<bool>(*client, puts).ok());
    for (Task<bool>& put : puts) EXPECT_TRUE(put.TakeResult().ok()) << "seed " << seed;
    EXPECT_EQ(*fabric::Run(*client, Get(*client, *table, "a")), "1") << "seed " << seed;
    EXPECT_EQ(*fabric::Run(*client, Get(*client, *table, "b")), "2") << "seed " << seed;
  }
}

Task<Done> RefusedInserts(Client& client, Index& table) {
  while (true) {
    Op op(client, OpKind::kInsert);
    co_await table.Insert(op, "k", "v");
  }
}

Task<Done> Puts(Client& client, Index& table, int count) {
  for (int i = 0; i < count; ++i) {
    Op op(client, OpKind::kInsert);
    co_await table.Put(op, "x", "y");
  }
  co_return Done{};
}

TEST(ReferenceLock, AnotherHoldsItAgainAndAgainWithoutAChange_NobodyIsTakenForDead) {
  // Given a client that holds the lock shortly, many times, and never changes anything
  // When another waits for that lock, without any fault, over many seeds
  // Expect that neither is cut off: many short tenures are not a long one
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    ReferenceEngine engine(Options{.buckets = 1});
    SimFabric world({.seed = seed, .region_bytes = {engine.region_bytes()}, .chaos = Chaos::ForSeed(seed, false)});
    const auto holder = std::move(*world.Connect());
    const auto waiter = std::move(*world.Connect());
    const auto holders = engine.Open(*holder);
    const auto waiters = engine.Open(*waiter);
    Task<Done> inserts = RefusedInserts(*holder, *holders);
    Task<Done> puts = Puts(*waiter, *waiters, 20);
    inserts.Start();
    puts.Start();
    while (!puts.done() && !inserts.done() && world.Step()) continue;
    EXPECT_FALSE(inserts.done()) << "seed " << seed << ": " << inserts.TakeResult().error().ToString();
    ASSERT_TRUE(puts.done());
    EXPECT_TRUE(puts.TakeResult().ok()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace farside::index::reference
