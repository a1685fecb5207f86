// Clients of a pool: what they do for clients that died.
#include "pool/client.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/pool/client_scenarios.h"
#include "tests/pool/members/sync_listener_run.h"

namespace farside::pool {
namespace {

Task<Done> AllocateOne(fabric::Op& op, Allocator& allocator, uint64_t bytes) {
  co_await allocator.Allocate(op, bytes);
  co_return Done{};
}

TEST(PoolClient, TheWordOfAChunkIsWipedWhileTwoOperationsClaimIt_NoClientCrashes) {
  // Given two operations of one client that claim the only chunk.
  // When one of them has got it, and its word is wiped, so that the other gets it, too.
  // Expect that the client goes on with what it knows of the chunk, and counts the nonsense.
  uint64_t met = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Geometry geometry = SmallGeometry(2);
    geometry.region_bytes = geometry.chunk_table() + kPage + geometry.chunk_bytes;
    ASSERT_EQ(geometry.chunks(), 1u);
    PoolRun run(PoolChaos(seed, /*faults=*/false), geometry);
    ManualClient client(run);
    ASSERT_TRUE(client.Join().ok());
    Allocator& allocator = client.pool().allocator(ManualClient::kNode);
    fabric::Op op(client.client(), fabric::OpKind::kMaintenance);
    fabric::Op other_op(client.client(), fabric::OpKind::kMaintenance);
    Task<Done> one = AllocateOne(op, allocator, 64);
    Task<Done> other = AllocateOne(other_op, allocator, 128);
    one.Start();
    other.Start();
    while (run.Word(geometry.chunk_word(0)) == 0) ASSERT_TRUE(run.world().Step());
    std::memset(run.world().memory(ManualClient::kNode).data() + geometry.chunk_word(0), 0, 8);
    while (!one.done() || !other.done()) ASSERT_TRUE(run.world().Step());
    met += allocator.stats().nonsense;
    EXPECT_TRUE(one.TakeResult().ok() || other.TakeResult().ok()) << "seed " << seed;
  }
  EXPECT_GT(met, 0u);
}

TEST(PoolClient, ABlockOnANodeThatThePoolDoesNotHave_IsTakenBackByNoAllocator) {
  // Given a client of a pool with one node.
  // When it is asked about other nodes, as a damaged far pointer makes it do: it retires a block there, asks
  // for memory, and whether the owner of a lock lives.
  // Expect that it has nothing there, that trips fail with kCorrupt, and that it can leave afterwards.
  PoolRun run(PoolChaos(1, /*faults=*/false));
  ManualClient client(run);
  ASSERT_TRUE(client.Join().ok());
  for (const uint16_t number : {1, 2, 4096, 0xffff}) {
    const fabric::NodeId absent{number};
    {
      const PoolClient::Pin pin = client.pool().Begin();
      Allocator& allocator = client.pool().allocator(absent);
      allocator.Retire(fabric::FarAddr(absent, run.geometry().first_chunk() + kLine), kLine,
                       pin.epoch(absent));
      EXPECT_FALSE(allocator.TryAllocate(kLine).has_value());
    }
    const Result<fabric::FarAddr> block =
        client.Try([&](fabric::Op& op) { return client.pool().allocator(absent).Allocate(op, kLine); });
    ASSERT_FALSE(block.ok());
    EXPECT_EQ(block.error().code(), ErrorCode::kCorrupt);
    const Result<Standing> standing = client.Try(
        [&](fabric::Op& op) { return client.pool().member(absent).StandingOf(op, client.self()); });
    ASSERT_FALSE(standing.ok());
    EXPECT_EQ(standing.error().code(), ErrorCode::kCorrupt);
  }
  EXPECT_TRUE(client.Leave().ok());
}

Task<Done> SyncAgainAndAgain(ManualClient& client, int& running) {
  fabric::Op op(client.client(), fabric::OpKind::kMaintenance);
  for (int i = 0; i < 20; ++i) co_await client.pool().Sync(op, /*raise=*/true);
  --running;
  co_return Done{};
}

Task<Done> MaintainAgainAndAgain(ManualClient& client, int& running, int& called) {
  fabric::Op op(client.client(), fabric::OpKind::kMaintenance);
  for (int i = 0; i < 20; ++i) {
    client.pool().AfterGrace(ManualClient::kNode, [&called] { ++called; });
    co_await client.pool().Maintain(op);
  }
  while (called < 20) co_await client.pool().Maintain(op);
  --running;
  co_return Done{};
}

TEST(PoolClient, SyncsOfSeveralOperationsAreAnsweredInAnyOrder_NothingIsForgotten) {
  // Given a client with several operations that sync, one of them in the course of its maintenance.
  // When the answers come in any order.
  // Expect that the client never knows less than before, and that every callback is called once.
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    fabric::sim::SimOptions sim = PoolChaos(seed, /*faults=*/false);
    sim.chaos.delay_answer = 512;
    PoolRun run(std::move(sim));
    ManualClient client(run);
    ASSERT_TRUE(client.Join().ok());
    int running = 3;
    int called = 0;
    std::vector<Task<Done>> tasks;
    tasks.push_back(SyncAgainAndAgain(client, running));
    tasks.push_back(SyncAgainAndAgain(client, running));
    tasks.push_back(MaintainAgainAndAgain(client, running, called));
    for (Task<Done>& task : tasks) task.Start();
    uint64_t known = 0;
    while (running > 0) {
      ASSERT_TRUE(run.world().Step());
      const uint64_t knows = client.pool().member(ManualClient::kNode).known_epoch();
      ASSERT_GE(knows, known) << "seed " << seed;
      known = knows;
    }
    EXPECT_EQ(called, 20);
  }
}

TEST(PoolClientCrash, ChunkLosesItsOwnerDuringTheSweep_NothingIsLost) {
  // Given a client that dies with a block that it had to give back, in the chunk of a client that leaves.
  // When that one leaves while a third one sweeps.
  // Expect that the third one looks again before it releases the slot, and finds the block.
  EXPECT_EQ(ChunkLosesItsOwnerDuringTheSweep(), "");
}

TEST(PoolClientCrash, AWalkTakesLongerThanALease_TheSurvivorSweepsOnceAndIsNotFenced) {
  // Given a pool whose tables take three leases to walk through, and a client that dies with a leak.
  // When a survivor sweeps while another client watches.
  // Expect that the survivor is not taken for dead, and that one sweep is enough.
  EXPECT_EQ(AWalkTakesLongerThanALease(), "");
}

TEST(PoolClient, AVerbWithoutAWaiterOutlivesItsOperation_HoldsItsEpoch) {
  // Given an operation that has ended, with a CAS on its way.
  // When its client syncs again and again, and another client unlinks the block and wants its memory.
  // Expect that the memory is not used again before the CAS has landed.
  EXPECT_EQ(AVerbWithoutAWaiterOutlivesItsOperation(), "");
}

TEST(PoolClient, AVerbWithoutAWaiterIsAlwaysOnItsWay_EpochsArePublished) {
  // Given operations that leave verbs behind faster than these land.
  // Expect that their client publishes newer epochs: it waits for verbs of old operations only.
  EXPECT_EQ(AVerbWithoutAWaiterIsAlwaysOnItsWay(), "");
}

TEST(PoolClient, AClientLeavesWithAVerbOnItsWay_ItLandsBefore) {
  // Given a client with a CAS on its way that no coroutine awaits.
  // When it leaves.
  // Expect that the CAS has landed when its slot is free.
  EXPECT_EQ(AClientLeavesWithAVerbOnItsWay(), "");
}

TEST(PoolClient, WhatRidesWithASync_IsKnownWhenGraceIsOver) {
  // Given a word that rides with every sync, and a client that changes it and waits for grace, again and
  // again
  // When two others act on the word as they know it, over many seeds
  // Expect that no client acts on an old one when the grace is over, whether READs of a trip are ordered or
  // not
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const EpochOutcome outcome = RunSyncListeners(PoolChaos(seed, /*faults=*/false), seed % 2 == 0);
    EXPECT_EQ(outcome.problem, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace farside::pool
