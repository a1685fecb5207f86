// Clients that go offline and come back: what it costs, and what other clients gain.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/pool/client_run.h"
#include "tests/pool/offline_scenarios.h"

namespace farside::pool {
namespace {

// The trips of one task that must not fail, one after the other; one to all nodes at once counts once.
template <class Start>
uint64_t TripsOf(ManualClient& client, Start start) {
  const uint64_t before = client.client().trips_posted();
  EXPECT_TRUE(client.Try(start).ok());
  return client.client().trips_posted() - before;
}

TEST(Offline, GoingTakesOneTripInAll_AndAHeartbeatOneToEachNode) {
  // Given a client of a pool with two nodes.
  // When it goes offline, beats, and comes back.
  // Expect one trip for going; a heartbeat and coming back are one trip to each node, because a trip in order
  // goes to one node; and a client that is online pays nothing for that.
  PoolRun run(PoolCalm(), SmallGeometry(), 2);
  ManualClient client(run);
  ASSERT_TRUE(client.Join().ok());
  PoolClient& pool = client.pool();
  EXPECT_EQ(TripsOf(client, [&](fabric::Op& op) { return pool.ComeOnline(op); }), 0u);
  EXPECT_EQ(TripsOf(client, [&](fabric::Op& op) { return pool.GoOffline(op); }), 1u);
  EXPECT_FALSE(pool.online());
  EXPECT_EQ(TripsOf(client, [&](fabric::Op& op) { return pool.GoOffline(op); }), 0u);
  EXPECT_EQ(TripsOf(client, [&](fabric::Op& op) { return pool.KeepUp(op); }), 2u);
  EXPECT_EQ(TripsOf(client, [&](fabric::Op& op) { return pool.ComeOnline(op); }), 2u);
  EXPECT_TRUE(pool.online());
  EXPECT_TRUE(client.Leave().ok());
}

TEST(Offline, ComingBack_IsOneTripOfDepthAtAnyNumberOfNodes) {
  // Given a client of a pool with three nodes that is offline.
  // When it comes back.
  // Expect that its trips to all nodes are on the way at once, and that no other follows.
  PoolRun run(PoolCalm(), SmallGeometry(), 3);
  ManualClient client(run);
  ASSERT_TRUE(client.Join().ok());
  ASSERT_TRUE(*client.GoOffline());
  const uint64_t before = client.client().trips_posted();
  fabric::Op op(client.client(), fabric::OpKind::kMaintenance);
  Task<Done> back = client.pool().ComeOnline(op);
  back.Start();
  EXPECT_EQ(run.world().flights(), 3u);
  EXPECT_EQ(client.client().trips_posted() - before, 3u);
  while (!back.done()) ASSERT_TRUE(run.world().Step());
  ASSERT_TRUE(back.TakeResult().ok());
  EXPECT_EQ(client.client().trips_posted() - before, 3u);
  EXPECT_TRUE(client.pool().online());
  EXPECT_TRUE(client.Leave().ok());
}

TEST(Offline, AllOthersAreOffline_MemoryComesBackInOneRound) {
  // Given clients that are offline, one of them with a block that it has retired.
  // When it keeps up once.
  // Expect that the block is given back: no client has to move on first, this one included.
  PoolRun run(PoolCalm());
  ManualClient idle(run);
  ManualClient writer(run);
  ASSERT_TRUE(idle.Join().ok() && writer.Join().ok());
  ASSERT_TRUE(writer.Publish(0).ok() && writer.Unlink(0).ok());
  ASSERT_TRUE(*idle.GoOffline() && *writer.GoOffline());
  ASSERT_TRUE(writer.pool().NeedsGrace());
  ASSERT_TRUE(writer.KeepUp().ok());
  EXPECT_FALSE(writer.pool().NeedsGrace());
  EXPECT_TRUE(idle.Leave().ok() && writer.Leave().ok());
  EXPECT_EQ(ChunksInUse(run), 0u);
}

TEST(Offline, PublishedEpoch_IsNeverThatOfOffline) {
  // Given a client that goes offline. Expect that the epoch that engines take for a birth stays what it was.
  PoolRun run(PoolCalm());
  ManualClient client(run);
  ASSERT_TRUE(client.Join().ok());
  const uint64_t published = client.pool().published_epoch(ManualClient::kNode);
  ASSERT_TRUE(*client.GoOffline());
  ASSERT_TRUE(client.KeepUp().ok());
  EXPECT_EQ(client.pool().published_epoch(ManualClient::kNode), published);
  EXPECT_EQ(run.Word(run.geometry().client_slot(client.self().slot()) + kPulseOffset), kOfflineEpoch);
  ASSERT_TRUE(client.ComeOnline().ok());
  EXPECT_EQ(run.Word(run.geometry().client_slot(client.self().slot()) + kPulseOffset), published);
  EXPECT_TRUE(client.Leave().ok());
}

TEST(Offline, TheCoroutineThatWentOfflineIsDestroyed_ItsPulseIsAwaitedAllTheSame) {
  // Given a client whose coroutine is destroyed while the pulse that says offline is on its way.
  // When the client comes back.
  // Expect that it does so only after the pulse has landed.
  PoolRun run(PoolCalm());
  ManualClient client(run);
  ASSERT_TRUE(client.Join().ok());
  {
    fabric::Op op(client.client(), fabric::OpKind::kMaintenance);
    Task<bool> away = client.pool().GoOffline(op);
    away.Start();
    run.world().Hold(client.client().id(), ManualClient::kNode, kTestLease / 4);
  }
  ASSERT_TRUE(client.client().HasUnawaited());
  ASSERT_TRUE(client.ComeOnline().ok());
  EXPECT_FALSE(client.client().HasUnawaited());
  EXPECT_NE(run.Word(run.geometry().client_slot(client.self().slot()) + kPulseOffset), kOfflineEpoch);
  EXPECT_TRUE(client.Leave().ok());
}

TEST(Offline, ClientsComeAndGo_NoReaderMeetsMemoryThatWasUsedAgain) {
  // Given readers and writers that go offline between operations, over many seeds.
  // Expect that a reader finds what it was pointed to.
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const EpochOutcome outcome = RunPinned(PoolChaos(seed, /*faults=*/false), Presence::kComesAndGoes);
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
  }
}

// A client that owns as many chunks, each with a block in use and some that are free.
Geometry ManyChunks() {
  Geometry geometry = SmallGeometry();
  geometry.region_bytes = 2 * 1024 * 1024;
  geometry.chunk_bytes = 4 * 1024;
  return geometry;
}
Task<Done> TakeOneOfEach(fabric::Op& op, Allocator& allocator, uint64_t chunks) {
  constexpr uint64_t kHalf = 1024;
  while (allocator.stats().chunks_owned < chunks) co_await allocator.Allocate(op, kHalf, BlockUse::kRecords);
  co_return Done{};
}

TEST(Offline, GivingUpManyChunks_IsDoneInShortVisits) {
  // Given a client that owns more chunks than it can give up in a small part of its lease.
  constexpr uint64_t kChunks = 300;
  PoolRun run(PoolCalm(), ManyChunks());
  ManualClient client(run);
  ASSERT_TRUE(client.Join().ok());
  Allocator& allocator = client.pool().allocator(ManualClient::kNode);
  ASSERT_TRUE(client.Try([&](fabric::Op& op) { return TakeOneOfEach(op, allocator, kChunks); }).ok());
  // When it gives up its chunks, visit by visit.
  // Expect that no visit takes long, that each gives up some, and that all are given up in the end.
  const auto disown = [&] { return *client.Try([&](fabric::Op& op) { return client.pool().Disown(op); }); };
  int visits = 0;
  for (bool done = false; !done; ++visits) {
    const uint64_t before = allocator.stats().chunks_owned;
    const Nanos began = client.client().Now();
    done = disown();
    EXPECT_LT(client.client().Now() - began, kTestLease / 4);
    ASSERT_LT(allocator.stats().chunks_owned, before);
  }
  EXPECT_GT(visits, 2);
  EXPECT_TRUE(client.pool().idle());
  EXPECT_TRUE(client.Leave().ok());
}

TEST(Offline, AClientIsWantedAgain_ItKeepsTheRestOfItsChunks) {
  // Given a client with a long lease that owns many chunks, and is wanted.
  // When it begins to give them up. Expect that it stops soon, and gives up the rest when it is not wanted.
  constexpr uint64_t kChunks = 300;
  PoolRun run(PoolCalm(), ManyChunks());
  ManualClient client(run, 1000 * kTestLease);
  ASSERT_TRUE(client.Join().ok());
  Allocator& allocator = client.pool().allocator(ManualClient::kNode);
  ASSERT_TRUE(client.Try([&](fabric::Op& op) { return TakeOneOfEach(op, allocator, kChunks); }).ok());
  std::atomic<bool> wanted = true;
  const auto disown = [&] {
    return *client.Try([&](fabric::Op& op) { return client.pool().Disown(op, &wanted); });
  };
  EXPECT_FALSE(disown());
  EXPECT_GT(allocator.stats().chunks_owned, kChunks / 2);
  wanted = false;
  EXPECT_TRUE(disown());
  EXPECT_EQ(allocator.stats().chunks_owned, 0u);
  EXPECT_TRUE(client.Leave().ok());
}

}  // namespace
}  // namespace farside::pool
