// Leaving a pool of two nodes while others die.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "fabric/run.h"
#include "pool/client.h"
#include "tests/pool/pool_run.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;

constexpr uint64_t kBytes = kLine;
constexpr NodeId kFirst{0};
constexpr NodeId kSecond{1};

// A pool of two nodes. What the table would reach is a list of blocks.
struct TwoNodes {
  TwoNodes() : world(Options()) {}

  static fabric::sim::SimOptions Options() {
    fabric::sim::SimOptions options = PoolCalm();
    options.region_bytes.assign(2, SmallGeometry().region_bytes);
    return options;
  }
  std::byte* At(NodeId node, uint64_t offset) { return world.memory(node).data() + offset; }

  // What others see when they have fenced a client that has died before, with nothing in flight.
  void SayFenced(NodeId node, Owner dead) {
    std::byte* const at = At(node, geometry.client_slot(dead.slot()));
    StoreU64(at, ClientWord(LoadU64(at)).With(ClientState::kFenced).word());
    StoreU64(At(node, kDeathsOffset), LoadU64(At(node, kDeathsOffset)) + 1);
  }
  uint64_t ChunksInUse(NodeId node) {
    uint64_t used = 0;
    for (uint64_t chunk = 0; chunk < geometry.chunks(); ++chunk)
      used += LoadU64(At(node, geometry.chunk_word(chunk))) != 0;
    return used;
  }

  const Geometry geometry = SmallGeometry(4);
  fabric::sim::SimFabric world;
  std::vector<FarAddr> reachable;
};

struct Member {
  explicit Member(TwoNodes& in) : nodes(in), client(std::move(*in.world.Connect())) {
    ClientOptions options;
    options.lease.lease = kTestLease;
    const std::vector<Geometry> geometries(2, nodes.geometry);
    Op op(*client, OpKind::kMaintenance);
    pool = std::move(*fabric::Run(*client, PoolClient::Join(op, *client, geometries, options)));
    pool->set_walk([this](Op&, Reach& reach) { return Walk(reach); });
  }

  Task<Done> Walk(Reach& reach) {
    for (const FarAddr block : nodes.reachable) reach.Mark(block, kBytes);
    co_return Done{};
  }
  template <class Start>
  auto Try(Start start) {
    Op op(*client, OpKind::kMaintenance);
    return fabric::Run(*client, start(op));
  }
  Result<Done> Maintain() {
    return Try([&](Op& op) { return pool->Maintain(op); });
  }
  FarAddr Publish(NodeId node) {
    const FarAddr block = *Try([&](Op& op) { return pool->allocator(node).Allocate(op, kBytes); });
    nodes.reachable.push_back(block);
    return block;
  }
  void Unlink(FarAddr block) {
    std::erase(nodes.reachable, block);
    const PoolClient::Pin pin = pool->Begin();
    pool->allocator(block.node).Retire(block, kBytes, pin.epoch(block.node));
  }

  TwoNodes& nodes;
  std::unique_ptr<fabric::Client> client;
  std::unique_ptr<PoolClient> pool;
};

// A client is fenced on the second node when `after` events of the leaving have passed. Returns how many
// there were.
uint64_t LeaveWhileAnotherIsFenced(uint64_t after) {
  TwoNodes nodes;
  Member stays(nodes);
  Member leaves(nodes);
  const FarAddr kept = leaves.Publish(kSecond);
  FarAddr given_back;
  {
    Member departed(nodes);
    given_back = departed.Publish(kSecond);
    EXPECT_TRUE(departed.Try([&](Op& op) { return departed.pool->Leave(op); }).ok());
  }
  leaves.Unlink(given_back);  // now all of that chunk, which no client owns, is free
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(leaves.Maintain().ok());
    EXPECT_TRUE(stays.Maintain().ok());
  }
  Owner dead;
  {
    Member dies(nodes);
    dead = dies.pool->member(kSecond).self();
    nodes.world.Crash(dies.client->id());
  }

  Op op(*leaves.client, OpKind::kMaintenance);
  Task<Done> leave = leaves.pool->Leave(op);
  leave.Start();
  uint64_t events = 0;
  for (; !leave.done() && nodes.world.Step(); ++events) {
    if (events == after) nodes.SayFenced(kSecond, dead);
    if (events > after && events % 16 == 0) {
      EXPECT_TRUE(stays.Maintain().ok());
    }
  }
  EXPECT_TRUE(leave.done());
  const Result<Done> left = leave.TakeResult();
  EXPECT_TRUE(left.ok()) << "fenced after event " << after << ": " << left.error().ToString();

  stays.Unlink(kept);
  EXPECT_TRUE(stays.Try([&](Op& leaving) { return stays.pool->Leave(leaving); }).ok());
  EXPECT_EQ(nodes.ChunksInUse(kFirst) + nodes.ChunksInUse(kSecond), 0u) << "fenced after event " << after;
  return events;
}

TEST(PoolLeave, AnotherDiesMeanwhileAtAnyMoment_TheLeaverSweepsAndLeavesAllNodes) {
  // Given a client that leaves two nodes, with a chunk of its own, and one that has no owner and is free, on
  // the second.
  // When a client is fenced on the second node, at every moment of the leaving in turn.
  // Expect that it leaves both nodes, and that nothing is lost.
  uint64_t last = 1;
  for (uint64_t after = 0; after < last && !HasFailure(); ++after) last = LeaveWhileAnotherIsFenced(after);
  EXPECT_GT(last, 20u);
}

}  // namespace
}  // namespace farside::pool
