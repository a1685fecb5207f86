// The lock of a bucket of the reference table: takeovers with several operations in flight, and no takeover without need.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "index/reference/reference.h"
#include "pool/superblock.h"
#include "store/session.h"

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

// A world with one node, and a pool on it.
class World {
 public:
  explicit World(uint64_t seed)
      : fabric_({.seed = seed, .region_bytes = {512 * 1024}, .chaos = Chaos::ForSeed(seed, false)}) {
    EXPECT_TRUE(pool::FormatVolatile(fabric_.memory(fabric::NodeId{0}), {.chunk_bytes = 4096}, {1, 2}).ok());
  }
  SimFabric* operator->() { return &fabric_; }

 private:
  SimFabric fabric_;
};

// A client of the pool that has the table of one bucket open.
class Member {
 public:
  explicit Member(World& world) : client_(std::move(*world->Connect())) {
    const Status joined = fabric::Run(*client_, Join());
    EXPECT_TRUE(joined.ok()) << joined.error().ToString();
  }

  Client& client() { return *client_; }
  bool crashed() const { return static_cast<const SimClient&>(*client_).crashed(); }

  Task<bool> Put(std::string key, std::string value) {
    Op op(*client_, OpKind::kInsert);
    const bool inserted = co_await table_->index->Put(op, key, value);
    co_await KeepAlive();
    co_return inserted;
  }
  Task<bool> Insert(std::string key, std::string value) {
    Op op(*client_, OpKind::kInsert);
    const bool inserted = co_await table_->index->Insert(op, key, value);
    co_await KeepAlive();
    co_return inserted;
  }
  Task<std::string> Get(std::string key) {
    Op op(*client_, OpKind::kSearch);
    std::string value;
    const bool found = co_await table_->index->Get(op, key, value);
    co_return found ? value : std::string("absent");
  }

 private:
  Task<Done> Join() {
    Op op(*client_, OpKind::kMaintenance);
    const auto find = [](std::string_view, const OptionMap& options) { return MakeReferenceEngine(options); };
    pool::ClientOptions options;
    options.lease.lease = std::chrono::milliseconds(10);
    session_ = co_await store::Session::Join(op, *client_, find, options);
    const OptionMap one_bucket = {{"buckets", "1"}};
    table_.emplace(co_await session_->tables().CreateOrOpen(op, "t", "reference", one_bucket));
    co_return Done{};
  }
  Task<Done> KeepAlive() {
    if (!session_->pool().MaintenanceDue()) co_return Done{};
    Op op(*client_, OpKind::kMaintenance);
    co_await session_->pool().Maintain(op);
    co_return Done{};
  }

  std::unique_ptr<Client> client_;
  std::unique_ptr<store::Session> session_;
  std::optional<OpenTable> table_;
};

TEST(ReferenceLock, TwoOperationsOfOneClientMeetADeadOwner_OnlyOneTakesOver) {
  // Given a bucket whose owner died with the lock
  // When one client runs two puts on it at once, over many seeds
  // Expect that both succeed and are found: each takes the lock for itself, not for its client
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    {
      Member dead(world);
      world->set_fault({world->verbs_posted(), FaultKind::kCrashAfter});
      Task<bool> put = dead.Put("d", "dead");
      put.Start();
      while (!dead.crashed() && world->Step()) continue;
      ASSERT_TRUE(dead.crashed());
    }
    Member member(world);
    std::vector<Task<bool>> puts;
    puts.push_back(member.Put("a", "1"));
    puts.push_back(member.Put("b", "2"));
    ASSERT_TRUE(fabric::RunAll<bool>(member.client(), puts).ok());
    for (Task<bool>& put : puts) {
      const Result<bool> done = put.TakeResult();
      EXPECT_TRUE(done.ok()) << "seed " << seed << ": " << done.error().ToString();
    }
    EXPECT_EQ(*fabric::Run(member.client(), member.Get("a")), "1") << "seed " << seed;
    EXPECT_EQ(*fabric::Run(member.client(), member.Get("b")), "2") << "seed " << seed;
    EXPECT_EQ(*fabric::Run(member.client(), member.Get("d")), "absent") << "seed " << seed;
  }
}

Task<Done> InsertForEver(Member& member) {
  while (true) co_await member.Insert("k", "v");
}

Task<Done> PutOften(Member& member, int times) {
  for (int i = 0; i < times; ++i) co_await member.Put("x", "y");
  co_return Done{};
}

TEST(ReferenceLock, AnotherHoldsItAgainAndAgainWithoutAChange_NobodyIsTakenForDead) {
  // Given a client that holds the lock shortly, many times, and never changes anything
  // When another waits for that lock, without any fault, over many seeds
  // Expect that neither is cut off: many short tenures are not a long one
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    Member holder(world);
    Member waiter(world);
    Task<Done> inserts = InsertForEver(holder);
    Task<Done> puts = PutOften(waiter, 20);
    inserts.Start();
    puts.Start();
    while (!puts.done() && !inserts.done() && world->Step()) continue;
    EXPECT_FALSE(inserts.done()) << "seed " << seed << ": " << inserts.TakeResult().error().ToString();
    ASSERT_TRUE(puts.done());
    EXPECT_TRUE(puts.TakeResult().ok()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace farside::index::reference
