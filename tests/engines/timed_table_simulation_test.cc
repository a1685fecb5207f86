// Tables run on the timed fabric unchanged: a hundred sessions of one pool, in virtual time.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "index/reference/reference.h"
#include "pool/region/superblock.h"
#include "store/registration.h"
#include "tests/support/timed_run.h"

namespace farside::fabric::sim {
namespace {

constexpr uint64_t kSessions = 100;
constexpr uint64_t kCounters = 50;
constexpr uint64_t kRounds = 20;
const index::OptionMap kBuckets = {{"buckets", "512"}};

Result<std::shared_ptr<index::Engine>> FindReference(std::string_view, const index::OptionMap& options) {
  return index::reference::MakeReferenceEngine(options);
}

std::string CounterName(uint64_t number) { return fmt::format("counter {}", number); }

// Every client adds to counters that all share, and keeps a key of its own.
Task<Done> Work(index::Tables& tables, index::OpenTable& table, pool::PoolClient& pool, Client& client,
                Op& op, uint64_t number) {
  const std::string own = fmt::format("own {}", number);
  Random random(number);
  for (uint64_t i = 0; i < kRounds; ++i) {
    co_await tables.Validate(op, table);
    const std::string counter = CounterName(random.Below(kCounters));
    const std::string value = fmt::format("value {} of {}", i, number);
    std::string found;
    {
      Op one(client, OpKind::kUpdate);
      co_await table.index->Increment(one, counter, 1);
    }
    {
      Op one(client, OpKind::kUpdate);
      co_await table.index->Put(one, own, value);
    }
    {
      Op one(client, OpKind::kSearch);
      const bool is_there = co_await table.index->Get(one, own, found);
      EXPECT_TRUE(is_there);
    }
    EXPECT_EQ(found, value);
    if (pool.MaintenanceDue()) co_await pool.Maintain(op);
  }
  co_return Done{};
}

Task<Done> Live(Client& client, uint64_t number) {
  Op op(client, OpKind::kMaintenance);
  const pool::ClientOptions options;
  std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, client, FindReference, options);
  {
    index::OpenTable table = co_await session->tables().CreateOrOpen(op, "shared", "reference", kBuckets);
    // An operation that waits syncs, and ends if it learns of a change of the catalog: this one is known.
    session->pool().RequestSync();
    co_await session->pool().Maintain(op);
    co_await Work(session->tables(), table, session->pool(), client, op, number);
  }
  co_await session->Leave(op);
  co_return Done{};
}

Task<Done> AddUp(Client& client, uint64_t& sum) {
  Op op(client, OpKind::kMaintenance);
  const pool::ClientOptions options;
  std::unique_ptr<store::Registration> session =
      co_await store::Registration::Join(op, client, FindReference, options);
  {
    index::OpenTable table = co_await session->tables().CreateOrOpen(op, "shared", "reference", kBuckets);
    co_await table.index->Verify(op);
    for (uint64_t i = 0; i < kCounters; ++i) {
      const std::string name = CounterName(i);
      sum += co_await table.index->Increment(op, name, 0);
    }
  }
  co_await session->Leave(op);
  co_return Done{};
}

struct Ending {
  Nanos now{0};
  uint64_t events = 0;
  uint64_t sum = 0;
  friend bool operator==(const Ending&, const Ending&) = default;
};

Ending RunTable(uint64_t seed) {
  constexpr uint64_t kRegionBytes = uint64_t{1} << 30;
  TimedRun run({.seed = seed, .region_bytes = {kRegionBytes, kRegionBytes}, .compute_nodes = 4});
  for (uint64_t node : {0, 1}) {
    const pool::FormatOptions options{.client_slots = 256, .chunk_bytes = 64 * 1024};
    EXPECT_TRUE(pool::FormatVolatile(run.world().memory(static_cast<NodeId>(node)), options, {1, node}).ok());
  }
  std::vector<Task<Done>*> tasks;
  for (uint64_t i = 0; i < kSessions; ++i) tasks.push_back(&run.Start(Live(run.Connect(), i)));
  run.Drain();
  for (Task<Done>* task : tasks) {
    if (!task->done()) {
      ADD_FAILURE() << "a session waits for ever";
      continue;
    }
    const Result<Done> result = task->TakeResult();
    EXPECT_TRUE(result.ok()) << result.error().ToString();
  }
  Ending ending;
  EXPECT_TRUE(run.Do(AddUp(run.Connect(), ending.sum)).ok());
  ending.now = run.world().Now();
  ending.events = run.world().events();
  return ending;
}

// Given a hundred sessions on four compute nodes that use one table on two memory nodes. Expect that nothing
// is lost, and that the same seed gives the same run.
TEST(TimedTable, AHundredSessionsShareATable) {
  const Ending ending = RunTable(1);
  EXPECT_EQ(ending.sum, kSessions * kRounds);
  EXPECT_EQ(RunTable(1), ending);
}

}  // namespace
}  // namespace farside::fabric::sim
