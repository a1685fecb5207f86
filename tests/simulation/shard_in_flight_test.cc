#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sanitized.h"
#include "tests/simulation/shard_in_flight.h"

namespace farside::index::shard {
namespace {

TEST(ShardInFlight, ManyOperationsOfTwoClients_AreLinearizable) {
  // Given two clients and three keys, in tables of all shapes. When each has six operations in flight, again and again,
  // and in every other run one of them dies in the middle. Expect that every history is linearizable, and that everybody
  // who lives comes to an end.
  EXPECT_EQ(in_flight::ManyInFlightOften(kSanitized ? 100 : 1000), "");
}

TEST(ShardInFlight, PutsOfOneKey_AreCarriedByOneChange) {
  // Given a key. When ten puts of it are in flight at once. Expect two changes: the first put, and the second, which carries
  // all others. The value of the last is there, and only the first was an insert.
  World world;
  Member member(world, {});
  member.Now(member.Put("other", "so that the table is known"));
  std::vector<Task<PutOutcome>> puts;
  for (int i = 0; i < 10; ++i) puts.push_back(member.Put("hot", "value " + std::to_string(i)));
  const uint64_t before = member.client().counters().Total().index_trips;
  for (Task<PutOutcome>& put : puts) put.Start();
  world.Drive(
      [&] { return std::all_of(puts.begin(), puts.end(), [](const auto& put) { return put.done(); }); });
  for (size_t i = 0; i < puts.size(); ++i) {
    const Result<PutOutcome> outcome = puts[i].TakeResult();
    ASSERT_TRUE(outcome.ok()) << outcome.error().ToString();
    EXPECT_EQ(*outcome, i == 0 ? PutOutcome::kInserted : PutOutcome::kReplaced) << i;
  }
  puts.clear();
  EXPECT_EQ(member.client().counters().Total().index_trips - before, 4u);
  EXPECT_EQ(member.Now(member.Get("hot")), "value 9");
  EXPECT_EQ(world.problem, "");
}

}  // namespace
}  // namespace farside::index::shard
