// The real shard table on a real pool, one or two units: all interleavings of a few operations.
#include <gtest/gtest.h>

#include "tests/engines/shard/explored.h"
#include "tests/engines/shard/world.h"

namespace farside::index::shard {
namespace {

using check::Exploration;
using check::Explore;

TEST(ExhaustiveShard, TwoPutAndDeleteAKeyThroughAHole_AllInterleavingsAreLinearizable) {
  // Given a full bucket with a hole that another key has left
  // When two clients put and delete one key of it, which takes the lock, and a third reads it twice
  // Expect that nothing is wrong in any interleaving, and that the key does not stand twice in the end
  Explored explored({{"slots", "2"}, {"overflow_slots", "1"}});
  PutsAndDeletesThroughAHole(explored);
  const Exploration found = Explore(explored.scenario);
  EXPECT_EQ(ProblemOf(found, explored.scenario), "");
  EXPECT_GT(found.histories, 100u);
}

TEST(ExhaustiveShard, WriterThatAppendsMayDie_ReaderAndSuccessorAreNotMisled) {
  // Given an empty bucket
  // When two clients append one key to it, of which one may die or lose a completion, beside a reader
  // Expect that nothing is wrong, and a successor finds what was acknowledged and goes on
  Explored explored({{"slots", "2"}, {"overflow_slots", "1"}});
  AppendsOfOneKey(explored);
  const Exploration found = Explore(explored.scenario);
  EXPECT_EQ(ProblemOf(found, explored.scenario), "");
  EXPECT_GT(found.histories, 20u);
}

TEST(ExhaustiveShard, SplitMeetsAnAppendByAClientThatOnlyKnowsTheAnnouncement_NeitherIsLost) {
  // Given a unit that a client that may die is about to split
  // When a client that only knows that the resize was announced appends a key that moves, and another such
  // reads it
  // Expect that nothing is wrong, that a successor finishes the split, and that the table is whole
  const std::string stays = KeyFor([](const KeyHash& hash) { return (hash.hash() & 1) == 0; });
  const std::string moves = KeyFor([](const KeyHash& hash) { return (hash.hash() & 1) == 1; });
  Explored explored({{"slots", "2"}, {"overflow_slots", "1"}, {"burst", "0"}});
  SplitMeetsAnAppend(explored, stays, moves);
  const Exploration found = Explore(explored.scenario);
  EXPECT_EQ(ProblemOf(found, explored.scenario), "");
  EXPECT_GT(found.histories, 50u);
}

}  // namespace
}  // namespace farside::index::shard
