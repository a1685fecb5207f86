// Clients with many operations in flight at once: changes of one key take turns and carry each other
// (index/kit/key_queue.h); changes of one segment do not wait for each other.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engines/sephash/world.h"
#include "tests/support/in_flight.h"
#include "tests/support/sanitized.h"

namespace farside::index::sephash {
namespace {

TEST(SephashInFlight, ManyOperationsOfTwoClients_AreLinearizable) {
  // Given two clients and a few keys, in tables of all shapes. When each has six operations in flight, again
  // and again, and in every other run one of them dies in the middle.
  // Expect that every history is linearizable, and that every live client comes to an end.
  std::vector<OptionMap> shapes = (*MakeSephashEngine({}))->stress_options();
  shapes.push_back({{"entries", "14"}, {"main", "1"}, {"depth_bits", "2"}});
  shapes.push_back({});
  for (uint64_t seed = 1; seed <= 1600 / kFewer; ++seed) {
    const OptionMap& options = shapes[seed / 2 % shapes.size()];
    ASSERT_EQ((in_flight::ManyInFlight<World, Member>(
                  seed, options, {.keys = seed % 3 == 0 ? 12u : 3u, .dies = seed % 2 == 0})),
              "")
        << "seed " << seed;
  }
}

TEST(SephashInFlight, PutsOfOneKey_AreCoalescedIntoOneChange) {
  // Given a key. When ten puts of it are in flight at once. Expect two changes of two trips each: the first
  // put, and the second, which carries all others. The value of the last is there, and no put says whether
  // its key was.
  const in_flight::PutsAtOnce puts = in_flight::PutAtOnce<World, Member>();
  EXPECT_EQ(puts.problem, "");
  EXPECT_EQ(puts.index_trips, 4u);
  EXPECT_EQ(puts.value, "value 9");
}

TEST(SephashInFlight, ManyPutsOfOneSegment_EachFindsItsSlot) {
  // Given one client. When 300 puts of different keys are in flight at once, through several rounds.
  // Expect that all of them end, that each key is there, and that no more rounds were merged than were full.
  for (uint64_t seed = 1; seed <= 20 / std::min<uint64_t>(kFewer, 4); ++seed) {
    World world({.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
    Member member(world, {{"entries", "30"}});
    // An operation that learns while it waits that the table was made has to look anew.
    member.Now(member.Maintain());
    member.Now(member.Get("other"));
    constexpr int kPuts = 300;
    std::vector<Task<PutOutcome>> puts;
    for (int i = 0; i < kPuts; ++i) puts.push_back(member.Put(fmt::format("k{}", i), std::to_string(i)));
    for (Task<PutOutcome>& put : puts) put.Start();
    const auto done = [](const auto& task) { return task.done(); };
    world.Drive([&] { return std::all_of(puts.begin(), puts.end(), done); });
    ASSERT_TRUE(std::all_of(puts.begin(), puts.end(), done)) << "seed " << seed;
    for (Task<PutOutcome>& put : puts) {
      const Result<PutOutcome> end = put.TakeResult();
      ASSERT_TRUE(end.ok()) << "seed " << seed << ": " << end.error().ToString();
    }
    puts.clear();
    for (int i = 0; i < kPuts; ++i)
      ASSERT_EQ(member.Now(member.Get(fmt::format("k{}", i))), std::to_string(i)) << "seed " << seed;
    EXPECT_EQ(member.merge_counts().merges, kPuts / 30u);
    member.Now(member.Verify());
    ASSERT_EQ(world.problem, "") << "seed " << seed;
  }
}

TEST(SephashInFlight, SearchesOfOneKey_ShareTrips) {
  // Given a key. When ten searches of it are in flight at once, and share trips. Expect the trips of two: of
  // the first, and of the one that serves all others.
  const int of_two = in_flight::TripsOfSearches<World, Member>(/*at_once=*/false);
  EXPECT_GE(of_two, 2);
  EXPECT_EQ((in_flight::TripsOfSearches<World, Member>(/*at_once=*/true)), of_two);
}

}  // namespace
}  // namespace farside::index::sephash
