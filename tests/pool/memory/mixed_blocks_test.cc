// What long use by several clients does to memory, and what it costs in trips. bench/micro has the same with
// ten million blocks.
#include "tests/pool/memory/mixed_blocks.h"

#include <gtest/gtest.h>

namespace farside::pool {
namespace {

TEST(MixedBlocks, ManySizesFromEightSessions_MemoryReturnsToWhereItWas) {
  // Given eight clients of one pool.
  // When they allocate 100,000 blocks of 16 bytes to 64 KiB, and some of several chunks, mostly free those of
  // each other, and in the end free all and leave.
  // Expect every byte of the pool to be what it was before.
  MixedBlocksOptions options;
  options.live_blocks = 5000;
  options.turns_per_extent = 500;
  options.chunk_bytes = 256 * 1024;
  options.operations_per_sync = 100;
  options.url = "embedded:?size=512MiB";
  MixedBlocks mix(options);
  while (mix.turns() < 100'000) mix.Turn();
  EXPECT_GT(mix.ClaimedBytes(), mix.live_bytes());
  mix.FreeAllAndLeave();
  EXPECT_EQ(mix.Problem(), "");
  EXPECT_EQ(mix.Nonsense(), 0u);
  const FsckReport after = mix.Check();
  EXPECT_TRUE(after.bytes == mix.before());
  EXPECT_EQ(after.counts.chunks_free, after.counts.chunks);
  EXPECT_TRUE(after.ok());
}

TEST(MixedBlocks, FewBlocksPerChunk_MemoryDoesNotGrow) {
  // Given blocks of which three fit into a chunk.
  // When eight clients replace each other's for a long time.
  // Expect that what is claimed stays within three times of what the live blocks need.
  MixedBlocksOptions options;
  options.live_blocks = 20'000;
  options.smallest = options.largest = 1300;
  options.turns_per_extent = 0;
  options.chunk_bytes = 4096;
  options.operations_per_sync = 200;
  options.url = "embedded:?size=256MiB";
  MixedBlocks mix(options);
  const uint64_t needed = options.live_blocks / 3 * options.chunk_bytes;
  uint64_t most = 0;
  while (mix.turns() < 400'000) {
    mix.Turn();
    if (mix.turns() % 40'000 == 0) most = std::max(most, mix.ClaimedBytes());
  }
  EXPECT_EQ(mix.Problem(), "");
  EXPECT_LE(most, 3 * needed) << "needed " << needed;
}

TEST(MixedBlocks, SteadyState_AThousandSmallBlocksCostAtMostOneTrip) {
  // Given eight clients that replace each other's blocks of 64 bytes, and have warmed up.
  // Expect that operations wait for at most one trip per 1000 blocks that they allocate, and that each client
  // gets along with a few chunks.
  MixedBlocksOptions options;
  options.live_blocks = 50'000;
  options.smallest = options.largest = 64;
  options.turns_per_extent = 0;
  options.url = "embedded:?size=256MiB";
  MixedBlocks mix(options);
  while (mix.turns() < 500'000) mix.Turn();
  const uint64_t warm = mix.TripsOfAllocating();
  while (mix.turns() < 1'000'000) mix.Turn();
  EXPECT_EQ(mix.Problem(), "");
  EXPECT_LE(mix.TripsOfAllocating() - warm, 500u);
  EXPECT_LE(mix.ClaimedBytes(), options.sessions * 4 * options.chunk_bytes);
}

}  // namespace
}  // namespace farside::pool
