// The planted bugs of searches for room are caught by name.
#include <gtest/gtest.h>

#include "pool/mutants.h"
#include "tests/pool/room_scenarios.h"

namespace farside::pool {
namespace {

constexpr char kFull[] = "a client says that the pool is full, and it is not";

TEST(RoomMutant, RoomNotAnswered_IsCaught) {
  // Given a client that says it has given back what it could, and keeps it.
  // Expect that another client says that the pool is full, and without the bug it does not.
  EXPECT_EQ(AnIdleClientOwnsEmptyChunks(), "");
  const ScopedMutant mutant(kRoomNotAnswered);
  EXPECT_EQ(AnIdleClientOwnsEmptyChunks(), kFull);
}

TEST(RoomMutant, FullBeforeConclusive_IsCaught) {
  // Given a client that says that the pool is full after one look.
  // Expect that it does so before an idle client could give something back, and without the bug it does not.
  EXPECT_EQ(AnIdleClientOwnsASparseChunk(), "");
  const ScopedMutant mutant(kFullBeforeConclusive);
  EXPECT_EQ(AnIdleClientOwnsEmptyChunks(), kFull);
  EXPECT_EQ(AnIdleClientOwnsASparseChunk(), kFull);
}

}  // namespace
}  // namespace farside::pool
