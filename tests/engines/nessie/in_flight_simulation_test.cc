// Clients with many operations in flight at once: changes of one key take turns and carry each other
// (index/kit/key_queue.h); changes of other keys move it, split its slots and need its room meanwhile.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engines/nessie/world.h"
#include "tests/support/in_flight.h"
#include "tests/support/sanitized.h"

namespace farside::index::nessie {
namespace {

TEST(NessieInFlight, ManyOperationsOfTwoClients_AreLinearizable) {
  // Given two clients and a few keys, in tables of all shapes. When each has six operations in flight, again
  // and again, and in every other run one of them dies in the middle.
  // Expect that every history is linearizable, and that every live client comes to an end.
  std::vector<OptionMap> shapes = (*MakeNessieEngine({}))->stress_options();
  shapes.push_back({{"slots", "8"}, {"grow", "yes"}, {"max_load", "1"}});
  shapes.push_back({});
  for (uint64_t seed = 1; seed <= 800 / kFewer; ++seed) {
    const OptionMap& options = shapes[seed / 2 % shapes.size()];
    ASSERT_EQ((in_flight::ManyInFlight<World, Member>(
                  seed, options,
                  {.keys = seed % 3 == 0 ? 8u : 3u, .together = seed % 5 == 0, .dies = seed % 2 == 0})),
              "")
        << "seed " << seed;
  }
}

TEST(NessieInFlight, PutsOfOneKey_AreCoalescedIntoOneChange) {
  // Given a key. When ten puts of it are in flight at once. Expect two changes: the first put, and the
  // second, which carries all others. The value of the last is there.
  const in_flight::PutsAtOnce puts = in_flight::PutAtOnce<World, Member>();
  EXPECT_EQ(puts.problem, "");
  // An insert takes three at most, and an update four.
  EXPECT_LE(puts.trips, 7u);
  EXPECT_EQ(puts.value, "value 9");
}

TEST(NessieInFlight, SearchesOfOneKey_ShareTrips) {
  // Given a key. When ten searches of it are in flight at once, and share trips. Expect the trips of two: of
  // the first, and of the one that serves all others.
  const int of_two = in_flight::TripsOfSearches<World, Member>(/*at_once=*/false);
  EXPECT_GE(of_two, 2);
  EXPECT_EQ((in_flight::TripsOfSearches<World, Member>(/*at_once=*/true)), of_two);
}

}  // namespace
}  // namespace farside::index::nessie
