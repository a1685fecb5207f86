// Clients with many operations in flight at once: changes of one key take turns and carry each other, changes
// of one leaf take turns (index/kit/key_queue.h).
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engines/chime/world.h"
#include "tests/support/in_flight.h"
#include "tests/support/sanitized.h"

namespace farside::index::chime {
namespace {

using fabric::OpKind;

TEST(ChimeInFlight, ManyOperationsOfTwoClients_AreLinearizable) {
  // Given two clients and four keys, in tables of all shapes, read as this table does it and as others do.
  // When each has six operations in flight, again and again. Expect that every history is linearizable, and
  // that every client comes to an end.
  const std::vector<OptionMap> shapes = (*MakeChimeEngine({}))->stress_options();
  for (uint64_t seed = 1; seed <= (kSanitized ? 80 : 800); ++seed) {
    OptionMap options = shapes[seed / 2 % shapes.size()];
    if (seed % 2 == 0) {
      options.merge(OptionMap{{"leaf_read", "whole"},
                              {"insert_read", "whole"},
                              {"fence_read", "always"},
                              {"lock_read", "apart"}});
    }
    ASSERT_EQ((in_flight::ManyInFlight<World, Member>(seed, options, {.keys = 4})), "") << "seed " << seed;
  }
}

TEST(ChimeInFlight, PutsOfOneKey_AreCoalescedIntoOneChange) {
  // Given a key. When ten puts of it are in flight at once. Expect two changes: the first put, and the
  // second, which carries all others. The value of the last is there, and only the first was an insert.
  EXPECT_EQ((in_flight::PutsAreCoalescedIntoOneChange<World, Member>()), "");
}

TEST(ChimeInFlight, ChangesOfOneLeaf_HandTheLockOver) {
  // Given a table of one leaf. When one client changes ten keys of it at once. Expect one trip each, but two
  // for the first, and for the one behind eight hand-overs; and that no client has found the lock taken.
  World world;
  Member member(world, {{"keys", "inline"}});
  for (int i = 0; i < 10; ++i) member.Now(member.Put("number " + std::to_string(i), "value of"));
  std::vector<Task<bool>> updates;
  for (int i = 0; i < 10; ++i) updates.push_back(member.Update("number " + std::to_string(i), "another."));
  for (Task<bool>& update : updates) update.Start();
  world.Drive([&] {
    return std::all_of(updates.begin(), updates.end(), [](const auto& update) { return update.done(); });
  });
  updates.clear();
  EXPECT_EQ(member.tally(OpKind::kUpdate).operations, 10u);
  EXPECT_EQ(member.tally(OpKind::kUpdate).index_trips, 12u);
  EXPECT_EQ(member.tally(OpKind::kUpdate).retries, 0u);
  EXPECT_EQ(world.problem, "");
}

TEST(ChimeInFlight, CoalescingChangeIsAbandoned_OthersDoNotWaitForEver) {
  // Given ten puts of a key in flight, of which the second carries the others. When the second is destroyed
  // on its way.
  // Expect that the others end, and do not know what came of them.
  World world;
  Member member(world, {});
  member.Now(member.Put("other", "so that the table is known"));
  std::vector<Task<PutOutcome>> puts;
  for (int i = 0; i < 10; ++i) puts.push_back(member.Put("hot", "value " + std::to_string(i)));
  for (Task<PutOutcome>& put : puts) put.Start();
  world.Drive([&] { return puts[0].done(); });
  // The turn of the second begins by a timer that is due at once; then it sends a trip.
  for (int step = 0; step < 2; ++step) world.fabric.Step();
  ASSERT_FALSE(puts[1].done());
  puts.erase(puts.begin() + 1);
  world.Drive(
      [&] { return std::all_of(puts.begin(), puts.end(), [](const auto& put) { return put.done(); }); });
  for (size_t i = 1; i < puts.size(); ++i) {
    ASSERT_TRUE(puts[i].done());
    const Result<PutOutcome> outcome = puts[i].TakeResult();
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code(), ErrorCode::kOutcomeUnknown);
  }
}

TEST(ChimeInFlight, SearchesOfOneKey_ShareTrips) {
  // Given a key. When ten searches of it are in flight at once, and share trips. Expect the trips of two: of
  // the first, and of the one that serves all others.
  const int of_two = in_flight::TripsOfSearches<World, Member>(/*at_once=*/false);
  EXPECT_GE(of_two, 2);
  EXPECT_EQ((in_flight::TripsOfSearches<World, Member>(/*at_once=*/true)), of_two);
}

}  // namespace
}  // namespace farside::index::chime
