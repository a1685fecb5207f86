// How long a drop waits: one grace of the other clients, after which all memory of the table is free at once.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "index/reference/reference.h"
#include "tests/support/table_world.h"

namespace farside::index {
namespace {

constexpr size_t kNodes = 2;
// More than a client takes to come to a point from which only another client helps it on.
constexpr int kStepsBetweenSyncs = 2000;
constexpr int kMostSyncs = 100;

Task<Done> SyncOnce(TableMember& member) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  co_await member.pool().Sync(op, /*raise=*/false);
  co_return Done{};
}

struct Scene {
  // How often the other client has to sync until this has come true.
  int SyncsUntil(const std::function<bool()>& over) {
    for (int syncs = 0; syncs < kMostSyncs; ++syncs) {
      int steps = 0;
      world.Drive([&] { return over() || ++steps == kStepsBetweenSyncs; });
      if (over()) return syncs;
      other.Now(SyncOnce(other));
    }
    return kMostSyncs;
  }
  uint64_t Oldest(fabric::NodeId node) { return dropper.pool().allocator(node).OldestUnsettled(); }

  TableWorld world{{.nodes = kNodes}};
  TableMember dropper{world, "reference", reference::MakeReferenceEngine, {{"buckets", "4"}}};
  TableMember other{world, "reference", reference::MakeReferenceEngine, {{"buckets", "4"}}};
};

// One grace on all nodes, waited for as a drop does.
Task<Done> WaitForOneGrace(TableMember& member) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  size_t waiting = kNodes;
  for (size_t node = 0; node < kNodes; ++node)
    member.pool().AfterGrace(static_cast<fabric::NodeId>(node), [&waiting] { --waiting; });
  while (waiting > 0) {
    co_await member.pool().GoOffline(op);
    co_await member.pool().Maintain(op);
    co_await op.Pause(Nanos(1000));
  }
  co_return Done{};
}

TEST(DropSimulation, WaitsForOneGrace_AndThenAllIsFree) {
  // Given a table of two clients, of which one is online and does nothing but sync when it is told.
  // When the other one waits for one grace. Expect that this takes some syncs of the first one.
  int one_grace = 0;
  {
    Scene scene;
    Task<Done> grace = WaitForOneGrace(scene.dropper);
    grace.Start();
    one_grace = scene.SyncsUntil([&grace] { return grace.done(); });
    ASSERT_GT(one_grace, 0);
    ASSERT_LT(one_grace, kMostSyncs);
  }
  // When it drops the table instead. Expect that this takes as many syncs, and that nothing waits for a grace
  // then: what the table had can be used without any further sync.
  Scene scene;
  for (int i = 0; i < 8; ++i) scene.dropper.Now(scene.dropper.Put("key" + std::to_string(i), "value"));
  scene.other.Now(SyncOnce(scene.other));
  Task<Done> drop = scene.dropper.Drop();
  drop.Start();
  EXPECT_EQ(scene.SyncsUntil([&drop] { return drop.done(); }), one_grace);
  ASSERT_TRUE(drop.done());
  const Result<Done> dropped = drop.TakeResult();
  EXPECT_TRUE(dropped.ok()) << dropped.error().ToString();
  for (size_t node = 0; node < kNodes; ++node)
    EXPECT_EQ(scene.Oldest(static_cast<fabric::NodeId>(node)), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(scene.world.problem, "");
}

}  // namespace
}  // namespace farside::index
