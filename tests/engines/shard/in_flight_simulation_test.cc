#include <gtest/gtest.h>

#include "tests/engines/shard/in_flight.h"
#include "tests/support/sanitized.h"

namespace farside::index::shard {
namespace {

TEST(ShardInFlight, ManyOperationsOfTwoClients_AreLinearizable) {
  // Given two clients and three keys, in tables of all shapes. When each has six operations in flight, again
  // and again, and in every other run one of them dies in the middle. Expect that every history is
  // linearizable, and that every live client comes to an end.
  EXPECT_EQ(ManyInFlightOften(kSanitized ? 100 : 1000), "");
}

TEST(ShardInFlight, PutsOfOneKey_AreCoalescedIntoOneChange) {
  // Given a key. When ten puts of it are in flight at once. Expect two changes: the first put, and the
  // second, which carries all others. The value of the last is there, and only the first was an insert.
  EXPECT_EQ((in_flight::PutsAreCoalescedIntoOneChange<World, Member>()), "");
}

TEST(ShardInFlight, SearchesOfOneKey_ShareTrips) {
  // Given a key. When ten searches of it are in flight at once, and share trips. Expect the trips of two: of
  // the first, and of the one that serves all others.
  const int of_two = in_flight::TripsOfSearches<World, Member>(/*at_once=*/false);
  EXPECT_GE(of_two, 2);
  EXPECT_EQ((in_flight::TripsOfSearches<World, Member>(/*at_once=*/true)), of_two);
}

}  // namespace
}  // namespace farside::index::shard
