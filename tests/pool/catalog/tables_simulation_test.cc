// Catalog, clients, allocator and fsck together: whichever client dies, nothing is lost.
#include "tests/pool/catalog/tables_run.h"

#include <gtest/gtest.h>

#include "tests/support/sanitized.h"

namespace farside::pool {
namespace {

TEST(PoolTables, WithoutFaults_FsckFindsEveryByte) {
  // Given clients that create and drop tables of blocks, some of them the same ones.
  // When all have left.
  // Expect that fsck finds nothing but what is reachable or free.
  for (uint64_t seed = 1; seed <= 100 / kFewer; ++seed) {
    const RunOutcome outcome = RunTables(PoolChaos(seed, /*faults=*/false), 3);
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
  }
}

TEST(PoolTables, WithFaultsByChance_FsckFindsEveryByte) {
  // Given the same with clients that die, sleep and lose completions at any moment.
  // When one has stayed to put things in order.
  for (uint64_t seed = 1; seed <= 300 / kFewer; ++seed) {
    const RunOutcome outcome = RunTables(PoolChaos(seed, /*faults=*/true), 3);
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
  }
}

TEST(PoolTables, WithAFaultAtEveryVerb_FsckFindsEveryByte) {
  uint64_t faults = 0;
  for (uint64_t seed = 1; seed <= 2 / std::min<uint64_t>(kFewer, 2); ++seed) {
    const auto run = [](const fabric::sim::SimOptions& options) { return RunTables(options, 2); };
    ASSERT_EQ(ForEveryFault(PoolChaos(seed, /*faults=*/false), run, faults), "");
  }
  EXPECT_GT(faults, 300u);
}

}  // namespace
}  // namespace farside::pool
