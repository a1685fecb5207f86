// The real shard table on a real pool, one or two units: all interleavings of a few operations.
#include <gtest/gtest.h>

#include "tests/simulation/shard_explored.h"

namespace farside::index::shard {
namespace {

using check::Exploration;
using check::Explore;
using check::Finding;

TEST(ExhaustiveShard, TwoPutAndDeleteAKeyThroughAHole_AllInterleavingsAreLinearizable) {
  Explored explored({{"slots", "2"}, {"overflow_slots", "1"}});
  PutsAndDeletesThroughAHole(explored);
  const Exploration found = Explore(explored.scenario);
  EXPECT_EQ(found.finding, Finding::kNothing) << found.ToString();
  printf("states %lu cut %lu\n", found.states, found.cut);
}

}  // namespace
}  // namespace farside::index::shard
