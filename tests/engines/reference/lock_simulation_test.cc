// The lock of a bucket of the reference table: takeovers with several operations in flight, and no takeover
// without need.
#include <gtest/gtest.h>

#include <vector>

#include "tests/engines/reference/member.h"

namespace farside::index::reference {
namespace {

using fabric::sim::FaultKind;

TEST(ReferenceLock, TwoOperationsOfOneClientMeetADeadOwner_OnlyOneTakesOver) {
  // Given a bucket whose owner died with the lock
  // When one client runs two puts on it at once, over many seeds
  // Expect that both succeed and are found: each takes the lock for itself, not for its client
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    {
      Member dead(world);
      world->set_fault({world->verbs_posted(), FaultKind::kCrashAfter});
      Task<Done> put = dead.Put("d", "dead");
      put.Start();
      while (!dead.crashed() && world->Step()) continue;
      ASSERT_TRUE(dead.crashed());
    }
    Member member(world);
    std::vector<Task<Done>> puts;
    puts.push_back(member.Put("a", "1"));
    puts.push_back(member.Put("b", "2"));
    ASSERT_TRUE(fabric::RunAll<Done>(member.client(), puts).ok());
    for (Task<Done>& put : puts) {
      const Result<Done> done = put.TakeResult();
      EXPECT_TRUE(done.ok()) << "seed " << seed << ": " << done.error().ToString();
    }
    EXPECT_EQ(*fabric::Run(member.client(), member.Get("a")), "1") << "seed " << seed;
    EXPECT_EQ(*fabric::Run(member.client(), member.Get("b")), "2") << "seed " << seed;
    EXPECT_EQ(*fabric::Run(member.client(), member.Get("d")), "absent") << "seed " << seed;
  }
}

Task<Done> InsertForEver(Member& member) {
  while (true) co_await member.Insert("k", "v");
}

Task<Done> PutOften(Member& member, int times) {
  for (int i = 0; i < times; ++i) co_await member.Put("x", "y");
  co_return Done{};
}

TEST(ReferenceLock, AnotherHoldsItAgainAndAgainWithoutAChange_NoClientIsTakenForDead) {
  // Given a client that holds the lock shortly, many times, and never changes anything
  // When another waits for that lock, without any fault, over many seeds
  // Expect that neither is cut off: many short tenures are not a long one
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    World world(seed);
    Member holder(world);
    Member waiter(world);
    Task<Done> inserts = InsertForEver(holder);
    Task<Done> puts = PutOften(waiter, 20);
    inserts.Start();
    puts.Start();
    while (!puts.done() && !inserts.done() && world->Step()) continue;
    EXPECT_FALSE(inserts.done()) << "seed " << seed << ": " << inserts.TakeResult().error().ToString();
    ASSERT_TRUE(puts.done());
    EXPECT_TRUE(puts.TakeResult().ok()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace farside::index::reference
