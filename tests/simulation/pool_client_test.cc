// Clients of a pool: what they do for those who died.
#include "pool/client.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/simulation/pool_client_scenes.h"

namespace farside::pool {
namespace {

Task<Done> AllocateOne(fabric::Op& op, Allocator& allocator, uint64_t bytes) {
  co_await allocator.Allocate(op, bytes);
  co_return Done{};
}

TEST(PoolClient, TheWordOfAChunkIsWipedWhileTwoOperationsClaimIt_NobodyCrashes) {
  // Given two operations of one client that claim the only chunk.
  // When one of them has got it, and its word is wiped, so that the other gets it, too.
  // Expect that the client goes on with what it knows of the chunk, and counts the nonsense.
  uint64_t met = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Geometry geometry = SmallGeometry(2);
    geometry.region_bytes = geometry.chunk_table() + kPage + geometry.chunk_bytes;
    ASSERT_EQ(geometry.chunks(), 1u);
    PoolRun run(PoolChaos(seed, /*faults=*/false), geometry);
    PoolHand hand(run);
    ASSERT_TRUE(hand.Join().ok());
    Allocator& allocator = hand.pool().allocator(PoolHand::kNode);
    fabric::Op op(hand.client(), fabric::OpKind::kMaintenance);
    fabric::Op other_op(hand.client(), fabric::OpKind::kMaintenance);
    Task<Done> one = AllocateOne(op, allocator, 64);
    Task<Done> other = AllocateOne(other_op, allocator, 128);
    one.Start();
    other.Start();
    while (run.Word(geometry.chunk_word(0)) == 0) ASSERT_TRUE(run.world().Step());
    std::memset(run.world().memory(PoolHand::kNode).data() + geometry.chunk_word(0), 0, 8);
    while (!one.done() || !other.done()) ASSERT_TRUE(run.world().Step());
    met += allocator.stats().nonsense;
    EXPECT_TRUE(one.TakeResult().ok() || other.TakeResult().ok()) << "seed " << seed;
  }
  EXPECT_GT(met, 0u);
}

TEST(PoolClientCrash, ChunkLosesItsOwnerDuringTheSweep_NothingIsLost) {
  // Given a client that dies with a block that it had to give back, in the chunk of somebody who leaves.
  // When that one leaves while a third one sweeps.
  // Expect that the third one looks again before it buries the dead one, and finds the block.
  EXPECT_EQ(ChunkLosesItsOwnerDuringTheSweep(), "");
}

}  // namespace
}  // namespace farside::pool
