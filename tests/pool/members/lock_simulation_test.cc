// Locks in far memory: one holder at a time, and no lock dies with its holder.
#include "tests/pool/members/lock_run.h"

#include <gtest/gtest.h>

#include "tests/support/sanitized.h"

namespace farside::pool {
namespace {

TEST(PoolLock, ExcludesWithoutFaults_NoClientIsCutOff) {
  // Given three clients that take turns, in worlds that use every freedom but break nothing.
  // Expect that turns never overlap, none is lost, and no client is taken for dead.
  for (uint64_t seed = 1; seed <= 400 / kFewer; ++seed) {
    const RunOutcome outcome = RunLocks(PoolChaos(seed, /*faults=*/false));
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
  }
}

TEST(PoolLock, ExcludesWithFaultsByChance) {
  // Given three clients that take turns, and die, sleep and lose completions at any moment.
  // Expect that turns never overlap, and that the survivors and an auditor get the lock.
  for (uint64_t seed = 1; seed <= 400 / kFewer; ++seed) {
    const RunOutcome outcome = RunLocks(PoolChaos(seed, /*faults=*/true), 3, 4);
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
  }
}

TEST(PoolLock, ExcludesWithAFaultAtEveryVerb) {
  // Given two clients that take turns.
  // When each of their verbs in turn is the place of each kind of fault.
  // Expect the same.
  uint64_t faults = 0;
  for (uint64_t seed = 1; seed <= 40 / kFewer; ++seed) {
    const auto run = [](const fabric::sim::SimOptions& options) { return RunLocks(options, 2, 2); };
    ASSERT_EQ(ForEveryFault(PoolChaos(seed, /*faults=*/false), run, faults), "");
  }
  EXPECT_GT(faults, 40u * 100 / kFewer);
}

Task<Done> HoldAndWait(Membership& member, uint64_t& victim) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  co_await AcquireLock(op, member, kTestLock);
  victim = Number(member.client().id());
  co_await op.Pause(std::chrono::seconds(1));
  co_return Done{};
}

TEST(PoolLock, DeadHolder_IsSucceededByExactlyOneAtATime) {
  // Given a client that dies with the lock, in the middle of its turn, and four that wait for it.
  // Expect that exactly one is told that it took the lock over; the others find it free, after each other.
  for (uint64_t seed = 1; seed <= 100 / kFewer; ++seed) {
    fabric::sim::SimOptions options = PoolChaos(seed, /*faults=*/false);
    PoolRun run(options);
    uint64_t victim = 0;
    run.Start([&](Membership& member) { return HoldAndWait(member, victim); });
    while (victim == 0) ASSERT_TRUE(run.world().Step());
    run.world().Crash(static_cast<fabric::ClientId>(victim));
    Turns turns;
    std::list<int> left(4, 2);
    for (int& mine : left) run.Start([&](Membership& member) { return TakeTurns(member, run, turns, mine); });
    run.Drive();
    ASSERT_EQ(run.problem(), "") << "seed " << seed;
    ASSERT_EQ(turns.taken_over, 1u) << "seed " << seed;
    ASSERT_EQ(turns.completed, 8u);
  }
}

Task<Done> HoldWhileBeating(Membership& member, bool& holds) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  co_await AcquireLock(op, member, kTestLock);
  holds = true;
  const Nanos end = member.client().Now() + 10 * kTestLease;
  while (member.client().Now() < end) {
    co_await op.Pause(kTestLease / 4);
    const uint64_t known = member.known_epoch();
    co_await member.Sync(op, known, known, false);
  }
  holds = false;
  co_await ReleaseLock(op, member, kTestLock);
  co_return Done{};
}

Task<Done> ExpectFreeLock(Membership& member, PoolRun& run, const bool& held) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  const Acquired acquired = co_await AcquireLock(op, member, kTestLock);
  if (held || acquired != Acquired::kFree) run.Problem("the lock was taken from a living holder");
  co_await ReleaseLock(op, member, kTestLock);
  co_return Done{};
}

TEST(PoolLock, HolderThatBeats_KeepsItsLockForManyLeases) {
  // Given a client that holds a lock for ten leases, and beats.
  // Expect that a client that waits gets it free, and not before it was released; and that waiting kills no
  // client.
  PoolRun run(PoolCalm());
  bool held = false;
  run.Start([&](Membership& member) { return HoldWhileBeating(member, held); });
  while (!held) ASSERT_TRUE(run.world().Step());
  for (int i = 0; i < 3; ++i)
    run.Start([&](Membership& member) { return ExpectFreeLock(member, run, held); });
  run.Drive();
  EXPECT_EQ(run.problem(), "");
  EXPECT_GE(run.world().Now(), 10 * kTestLease);
}

Task<Done> AcquireDamaged(Membership& member, PoolRun& run) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  const Result<Acquired> acquired = co_await AcquireLock(op, member, kTestLock).Outcome();
  if (acquired.ok() || acquired.error().code() != ErrorCode::kCorrupt)
    run.Problem("a lock without owner was taken");
  co_return Done{};
}

TEST(PoolLock, WordThatNamesNoClientSlot_IsDamage) {
  // Given a lock word whose owner has a slot that the registry does not have.
  // Expect an error that says so, and not a wait for ever.
  PoolRun run(PoolCalm());
  const uint64_t damaged = LockWord::HeldBy(Owner(4000, 1)).word();
  std::memcpy(run.world().memory(fabric::NodeId{0}).data() + kTestLock, &damaged, sizeof(damaged));
  run.Start([&](Membership& member) { return AcquireDamaged(member, run); });
  run.Drive();
  EXPECT_EQ(run.problem(), "");
}

}  // namespace
}  // namespace farside::pool
