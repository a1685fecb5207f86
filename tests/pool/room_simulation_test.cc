// A client that finds no room gets what idle ones can give back.
#include <gtest/gtest.h>

#include "tests/pool/room_scenarios.h"

namespace farside::pool {
namespace {

TEST(Room, AnIdleClientOwnsEmptyChunks_TheyAreReleased) {
  // Given a client that has freed all of its chunks, which are all there are, and is offline.
  // When another one wants a block, and the first one only keeps up.
  // Expect that the other one gets it before it says that the pool is full.
  EXPECT_EQ(AnIdleClientOwnsEmptyChunks(), "");
}

TEST(Room, AnIdleClientOwnsASparseChunk_ItIsGivenUp) {
  // Given a client that owns all chunks, one of them with a single block in use, and is offline.
  // When another one wants a block of that size, and the first one rests, as sessions do.
  // Expect that the other one gets it before it says that the pool is full.
  EXPECT_EQ(AnIdleClientOwnsASparseChunk(), "");
}

TEST(Room, TasksSearchTogether_NoneSaysFullTooEarly) {
  // Given the same, and three tasks of the other client that find no room at the same time.
  // When they search together.
  // Expect that none of them says that the pool is full before the first client has given up its chunks.
  EXPECT_EQ(TasksSearchTogether(), "");
}

}  // namespace
}  // namespace farside::pool
