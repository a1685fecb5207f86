// The allocator under every freedom of the contract, and under dying, sleeping and disconnected clients.
#include <gtest/gtest.h>

#include "fabric/sim/sim.h"
#include "tests/simulation/pool_world.h"

namespace farside::pool {
namespace {

using fabric::sim::Chaos;
using fabric::sim::Fault;
using fabric::sim::FaultKind;
using fabric::sim::kAllFaultKinds;
using fabric::sim::SimOptions;

TEST(PoolAllocator, MembersReplaceDeleteAndRead_NothingIsLostOrReused) {
  // Given members that share an array of slots, in worlds of all kinds, some of them with too little memory.
  // When everybody has left.
  // Expect every reader to have found what was published, and every chunk to be free.
  WorldReport total;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SimOptions options;
    options.seed = seed;
    options.chaos = Chaos::ForSeed(seed, /*faults=*/false);
    const WorldReport report = RunWorld(WorldShape::ForSeed(seed), std::move(options));
    ASSERT_EQ(report.problem, "") << "seed " << seed;
    ASSERT_EQ(report.dead, 0u) << "seed " << seed;
    total.allocations += report.allocations;
    total.reads += report.reads;
    total.out_of_memory += report.out_of_memory;
    total.stats.blocks_given_back += report.stats.blocks_given_back;
    total.stats.blocks_harvested += report.stats.blocks_harvested;
  }
  EXPECT_GT(total.reads, 1000u);
  EXPECT_GT(total.out_of_memory, 10u);
  EXPECT_GT(total.stats.blocks_given_back, 1000u);
  EXPECT_GT(total.stats.blocks_harvested, 1000u);
}

TEST(PoolAllocator, MembersDieByChance_SurvivorsFindAllThatTheyLeaked) {
  WorldReport total;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SimOptions options;
    options.seed = seed;
    options.chaos = Chaos::ForSeed(seed, /*faults=*/true);
    const WorldShape shape = WorldShape::ForSeed(seed);
    options.chaos.longest_sleep = shape.lease * 3;
    const WorldReport report = RunWorld(shape, std::move(options));
    ASSERT_EQ(report.problem, "") << "seed " << seed;
    total.dead += report.dead;
    total.stats.blocks_swept += report.stats.blocks_swept;
  }
  EXPECT_GT(total.dead, 100u);
  EXPECT_GT(total.stats.blocks_swept, 100u);
}

}  // namespace
}  // namespace farside::pool
