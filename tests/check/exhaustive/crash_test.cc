// Clients that die or are taken for dead while they hold a lock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "check/exhaustive/actor.h"
#include "check/exhaustive/explorer.h"
#include "fabric/op.h"

namespace farside::check {
namespace {

using fabric::Cas;
using fabric::ClientId;
using fabric::FarAddr;
using fabric::FenceVerb;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::Read;
using fabric::WriteObject;
using testing::Contains;
using testing::HasSubstr;

constexpr FarAddr kLock(NodeId{0}, 0);
constexpr FarAddr kCounter(NodeId{0}, 8);
constexpr int kRounds = 3;
constexpr int kAttempts = 2;  // of a round, before the owner of the lock is taken for dead

enum class Takeover {
  kNever,
  kAfterFencing,
  kWithoutFencing,
};

// True: the lock is ours.
Task<bool> TakeOver(Op& op, Takeover takeover, uint64_t owner, uint64_t me) {
  if (takeover == Takeover::kAfterFencing) {
    co_await op.InOrder(FenceVerb(NodeId{0}, ClientId{static_cast<uint32_t>(owner)}));
  }
  const uint64_t old = co_await op.InOrder(Cas(kLock, owner, me));
  co_return old == owner;
}

// The owner of the lock; 0: it is ours.
Task<uint64_t> TryToLock(Actor& self, Op& op, uint64_t me, int round) {
  uint64_t owner = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    self.Forget(static_cast<uint64_t>(round * kAttempts + attempt));
    owner = co_await op.InOrder(Cas(kLock, 0, me));
    if (owner == 0) break;
    co_await op.Pause(Nanos(1000));
  }
  co_return owner;
}

Task<bool> Lock(Actor& self, Op& op, Takeover takeover, uint64_t me) {
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t owner = co_await TryToLock(self, op, me, round);
    if (owner == 0) co_return true;
    if (takeover == Takeover::kNever) continue;
    const bool taken = co_await TakeOver(op, takeover, owner, me);
    if (taken) co_return true;
  }
  co_return false;
}

Task<Outcome> Increment(Actor& self, Takeover takeover) {
  Op op(self.client(), OpKind::kUpdate);
  const uint64_t me = Number(self.client().id());
  const bool locked = co_await Lock(self, op, takeover, me);
  if (!locked) co_return Error(ErrorCode::kContended, "the lock is held by others");
  const uint64_t seen = co_await op.InOrder(Read<uint64_t>(kCounter));
  const uint64_t sum = seen + 1;
  co_await op.InOrder(WriteObject(kCounter, sum), Cas(kLock, me, 0));
  co_return Outcome(Counted{sum});
}

// A client that runs alone must not give up; others may.
Task<Done> IncrementOnce(Actor& self, Takeover takeover, bool alone) {
  Result<Done> done = co_await Recorded(self, Call::Increment("n"), Increment(self, takeover)).Outcome();
  if (!done.ok() && done.error().code() == ErrorCode::kContended && !alone) co_return Done{};
  co_return done;
}

Scenario CounterUnderLock(Takeover takeover) {
  const Program among_others = [=](Actor& self) { return IncrementOnce(self, takeover, false); };
  const Program alone = [=](Actor& self) { return IncrementOnce(self, takeover, true); };
  Scenario scenario;
  scenario.region_bytes = 16;
  scenario.participants = {{.program = among_others, .may_die = true},
                           {.program = among_others, .may_die = true},
                           {.program = alone, .phase = 1}};
  return scenario;
}

TEST(ExhaustiveCrash, OwnerOfALockDiesAndNoClientTakesOver_OthersAreStuck) {
  // Given a lock that its owner alone can release
  const Scenario scenario = CounterUnderLock(Takeover::kNever);
  // When the owner may die at any verb
  const Exploration found = Explore(scenario);
  // Expect that a client gives up although it is alone
  EXPECT_EQ(found.conclusion, Conclusion::kStuck) << found.ToString();
  EXPECT_THAT(found.what, HasSubstr("client 3 gave up: kContended"));
  EXPECT_THAT(found.trace, Contains(HasSubstr("dies")));
}

TEST(ExhaustiveCrash, NoClientDiesAndNoneTakesOver_IsClean) {
  Scenario scenario = CounterUnderLock(Takeover::kNever);
  scenario.max_deaths = 0;
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveCrash, LockIsTakenOverAfterFencing_IsClean) {
  // Given clients that fence the owner of a lock after a while, whether it is dead or only slow
  Scenario scenario = CounterUnderLock(Takeover::kAfterFencing);
  scenario.max_deaths = 2;
  // When owners may die at any verb, and what they posted may arrive late
  const Exploration found = Explore(scenario);
  // Expect that nothing is lost and no client is stuck
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveCrash, LockIsTakenOverWithoutFencing_LateWriteIsFound) {
  // Given clients that break locks by timeout alone
  Scenario scenario = CounterUnderLock(Takeover::kWithoutFencing);
  // When owners may die
  const Exploration dying = Explore(scenario);
  // Expect that a late WRITE undoes an increment
  EXPECT_EQ(dying.conclusion, Conclusion::kNotLinearizable) << dying.ToString();
  // And even if owners are only slow
  scenario.max_deaths = 0;
  const Exploration slow = Explore(scenario);
  EXPECT_EQ(slow.conclusion, Conclusion::kNotLinearizable) << slow.ToString();
}

TEST(ExhaustiveCrash, WriteOfADeadClient_ArrivesLate) {
  // Given a client that may die, and one that breaks its lock by timeout alone and increments
  struct Programs {
    static Task<Done> IncrementThreeTimes(Actor& self) {
      for (int i = 0; i < 3; ++i) co_await IncrementOnce(self, Takeover::kWithoutFencing, true);
      co_return Done{};
    }
  };
  Scenario scenario = CounterUnderLock(Takeover::kWithoutFencing);
  scenario.participants = {scenario.participants[0], {.program = Programs::IncrementThreeTimes, .phase = 1}};
  // When the second one runs after the first has ended or died
  const Exploration found = Explore(scenario);
  // Expect that a WRITE of the dead arrives between increments
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
  EXPECT_THAT(found.trace, Contains("client 1 dies"));
  EXPECT_THAT(found.trace, Contains("client 1 (late) WRITE 0x8 stores 0x1"));
}

TEST(ExhaustiveCrash, FencedClientThatIsAlive_LearnsThatItsWriteMayHaveHappened) {
  // Given two clients that take over from each other although no client dies
  Scenario scenario = CounterUnderLock(Takeover::kAfterFencing);
  scenario.max_deaths = 0;
  // Expect that a fence in the middle of a trip leaves an increment that may have happened
  const Exploration found = Explore(scenario);
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

}  // namespace
}  // namespace farside::check
