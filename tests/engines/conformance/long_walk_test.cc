// Walks through tables that are so large that a walk takes longer than a lease.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tests/engines/conformance/engine.h"
#include "tests/support/table_world.h"

namespace farside::conformance {
namespace {

constexpr size_t kRecords = 4000;
constexpr Nanos kLease = std::chrono::milliseconds(10);  // of every TableMember

// Of engines that keep records in far memory.
std::vector<EngineUnderTest> Engines() {
  std::vector<EngineUnderTest> engines = RoomyEngines();
  std::erase_if(engines, [](const EngineUnderTest& engine) { return engine.label == "words_only"; });
  return engines;
}

class Member : public index::TableMember {
 public:
  Member(index::TableWorld& world, const EngineUnderTest& engine)
      : TableMember(world, engine.engine, engine.make, engine.options) {}

  // Syncs again and again, so that the table can grow.
  Task<Done> PutAll() {
    for (size_t i = 0; i < kRecords; ++i) {
      Result<index::PutOutcome> put = co_await Put(fmt::format("key-{:04}", i), "valuable").Outcome();
      while (!put.ok() && put.error().code() == ErrorCode::kContended) {
        co_await Maintain();
        put = co_await Put(fmt::format("key-{:04}", i), "valuable").Outcome();
      }
      if (!put.ok()) co_return put.error();
      if (pool().MaintenanceDue()) co_await Maintain();
    }
    co_return Done{};
  }
  Task<Done> WalkAll(pool::Reached& reached) {
    const pool::PoolClient::Pin pin = pool().Begin();
    co_await Walk(reached);
    co_return Done{};
  }
};

class LongWalkTest : public testing::TestWithParam<EngineUnderTest> {};
INSTANTIATE_TEST_SUITE_P(Engines, LongWalkTest, testing::ValuesIn(Engines()), LabelOf);

TEST_P(LongWalkTest, TakesLongerThanALease_TheClientIsNotTakenForDead) {
  // Given a table of some thousand records on a slow fabric, and two clients.
  // When one walks, and the other looks whether it is alive.
  // Expect that the walk takes longer than a lease, and that the client that walks is not fenced over it.
  index::WorldOptions options;
  options.region_bytes = 16 << 20;
  // A walk through a sephash table takes few trips; the steps of the others take many.
  options.chaos.tick = std::chrono::microseconds(GetParam().engine == "sephash" ? 400 : 50);
  index::TableWorld world(options);
  Member walker(world, GetParam());
  walker.Now(walker.Maintain());  // knows of the new table: a put that waits for growth goes on
  walker.Now(walker.PutAll());
  Member watcher(world, GetParam());
  watcher.pool().set_walk({});
  world.beats = false;

  const Nanos begin = world.fabric.Now();
  pool::Reached reached;
  Task<Done> walk = walker.WalkAll(reached);
  walk.Start();
  while (!walk.done()) {
    watcher.Now(watcher.Maintain());
    if (!walk.done()) watcher.Now(watcher.Pause(kLease / 64));
  }
  const Result<Done> walked = walk.TakeResult();
  EXPECT_TRUE(walked.ok()) << walked.error().ToString();
  EXPECT_GT(world.fabric.Now() - begin, 2 * kLease) << "too few records for this test";
  EXPECT_EQ(world.problem, "");
  walker.Now(walker.Maintain());
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::conformance
