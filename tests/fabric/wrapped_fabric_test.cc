// Epochs of a pool wait for verbs that no coroutine awaits, also those of a client that a test has wrapped.
#include "tests/support/wrapped_fabric.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

#include "fabric/op.h"
#include "fabric/sim/sim.h"

namespace farside::fabric {
namespace {

TEST(WrappedFabric, DetachedVerb_IsUnawaitedUntilItHasLanded) {
  // Given a wrapped client of a simulated fabric. When it detaches a verb.
  // Expect that it says so until the verb has landed, and that a backend cannot leave the question open.
  static_assert(std::is_abstract_v<Client>);
  sim::SimFabric world({.region_bytes = {4096}, .chaos = sim::Chaos::Calm()});
  WrappedClient client(std::move(*world.Connect()));
  Op op(client, OpKind::kMaintenance);
  op.Detach(Order::kInOrder, Cas(FarAddr(NodeId{0}, 64), 0, 1));
  EXPECT_EQ(client.trips_posted(), 1u);
  EXPECT_TRUE(client.HasUnawaited());
  EXPECT_TRUE(client.HasUnawaitedOfFirst(1));
  EXPECT_FALSE(client.HasUnawaitedOfFirst(0));
  while (world.Step()) continue;
  EXPECT_FALSE(client.HasUnawaitedOfFirst(1));
}

}  // namespace
}  // namespace farside::fabric
