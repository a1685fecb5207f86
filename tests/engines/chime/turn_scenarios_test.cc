// Changes of one client that take turns at a leaf, and hand its lock over.
#include "tests/engines/chime/turn_scenarios.h"

#include <gtest/gtest.h>

namespace farside::index::chime {
namespace {

TEST(ChimeTurns, SuccessorIsDestroyed_TheLockGoesOn) {
  // Given four updates of one client that wait for one leaf.
  // When one of them is destroyed, at every moment at which it has not taken the lock by a trip of its own.
  // Expect that the others end, and that another client can change the leaf.
  EXPECT_EQ(SuccessorIsDestroyed(), "");
}

TEST(ChimeTurns, OthersHaveTheirTurn) {
  // Given a client that always has changes of one leaf waiting.
  // When another client wants to change the leaf. Expect that it can.
  EXPECT_EQ(OthersHaveTheirTurn(), "");
}

TEST(ChimeTurns, InsertsOfOneLeaf_AllAreThere) {
  // Given two clients that insert keys of one leaf, many at a time, in worlds of all freedoms.
  // Expect that all keys are there.
  EXPECT_EQ(InsertsOfOneLeaf(200), "");
}

}  // namespace
}  // namespace farside::index::chime
