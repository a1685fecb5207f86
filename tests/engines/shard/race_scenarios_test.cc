// Two clients of a shard table that meet at one moment of a resize.
#include "tests/engines/shard/race_scenarios.h"

#include <gtest/gtest.h>

#include "tests/support/sanitized.h"

namespace farside::index::shard {
namespace {

TEST(ShardRaceScenarios, KeyIsInsertedBeforeItsUnitIsSplit_OnlyOneInsertCounts) {
  // Given a unit that is to be split, a client that only knows that this was announced, and one that knows
  // that it counts
  // When both insert one key, over many seeds
  // Expect that one of them does, and that the key stands once
  EXPECT_EQ(KeyIsInsertedBeforeItsUnitIsSplit(200 / kFewer), "");
}

TEST(ShardRaceScenarios, LineIsSplitWhileItIsFilled_NothingIsLost) {
  // Given a client that only knows that a resize was announced
  // When it puts a key into level 2 and learns on its way that the resize counts, while another client splits
  // that line
  // Expect that the key is there afterwards, over many seeds
  EXPECT_EQ(LineIsSplitWhileItIsFilled(576 / kFewer), "");
}

TEST(ShardRaceScenarios, DirectoryIsReadWhileAResizeIsAnnounced_ItIsWholeAllTheSame) {
  // Given a client that knows nothing of the table yet
  // When it reads the directory while another one announces a resize, over many seeds
  // Expect that it finds its key
  EXPECT_EQ(DirectoryIsReadWhileAResizeIsAnnounced(400 / kFewer), "");
}

}  // namespace
}  // namespace farside::index::shard
