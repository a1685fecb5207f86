// Deletes of the nessie table in a full pool (docs/engines/nessie.md, "Delete").
#include "tests/engines/nessie/full_pool_scenarios.h"

#include <gtest/gtest.h>

namespace farside::index::nessie {
namespace {

TEST(NessieFullPool, KeyIsThere_AnInsertOfItIsRefused) {
  // Given a pool without memory. When a client inserts a key that is there, which it does without a look.
  // Expect that it is told so, and not that there is no memory.
  EXPECT_EQ(RefusedInsertInAFullPool(), "");
}

TEST(NessieFullPool, ClientDiesWithASpareLine_AnotherTakesItOver) {
  // Given a pool without memory, and a table with one spare line left. When a client dies in the middle of a
  // delete, at every verb, and another one deletes another key. Expect that it gets the line at last, and
  // that the first key is there, or not, as it was before.
  EXPECT_EQ(DiesWithASpareLine(), "");
}

TEST(NessieFullPool, SlowClientMeetsADeadOnesSpareLine_ItIsNotUsedAgainMeanwhile) {
  // Given the entry of a dead client on a spare line. When a client that wants to change the key stops at
  // every step, and another one takes the line over, changes the key, and deletes it. Expect that the slow
  // one does not take the new entry for the old one.
  EXPECT_EQ(SlowClientMeetsASpareLine(), "");
}

TEST(NessieFullPool, DeleteIsDestroyedBehindItsEntry_ItsSpareLineComesBack) {
  // Given the same with one spare line left. When a delete is destroyed behind its entry, and its client
  // deletes the key once more. Expect that it gets the line again.
  EXPECT_EQ(DeleteIsDestroyedBehindItsEntry(), "");
}

}  // namespace
}  // namespace farside::index::nessie
