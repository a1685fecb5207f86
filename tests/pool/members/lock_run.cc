#include "tests/pool/members/lock_run.h"

#include <algorithm>

namespace farside::pool {

namespace {

constexpr uint64_t kFirstWord = kTestLock + 64;

constexpr uint64_t kSecondWord = kTestLock + 128;

Task<Done> TakeTurn(fabric::Op& op, Membership& member, PoolRun& run, Turns& turns) {
  const Acquired acquired = co_await AcquireLock(op, member, kTestLock);
  const uint64_t completed = turns.completed;
  auto [first, second] = co_await op.InOrder(fabric::Read<uint64_t>(member.At(kFirstWord)),
                                             fabric::Read<uint64_t>(member.At(kSecondWord)));
  if (acquired == Acquired::kTakenOver) ++turns.taken_over;
  if (acquired == Acquired::kFree && first != second)
    run.Problem("half a turn of another client is seen under the lock");
  if (std::max(first, second) < completed) run.Problem("a completed turn is lost");
  const uint64_t next = std::max(first, second) + 1;
  co_await op.InOrder(fabric::WriteObject(member.At(kFirstWord), next));
  co_await op.InOrder(fabric::WriteObject(member.At(kSecondWord), next));
  ++turns.completed;
  co_await ReleaseLock(op, member, kTestLock);
  co_return Done{};
}

}  // namespace

Task<Done> TakeTurns(Membership& member, PoolRun& run, Turns& turns, int& left) {
  while (left > 0) {
    fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
    --left;
    co_await TakeTurn(op, member, run, turns);
  }
  co_return Done{};
}

RunOutcome RunLocks(fabric::sim::SimOptions options, int clients, int turns_of_each) {
  PoolRun run(std::move(options));
  Turns turns;
  std::list<int> left(static_cast<size_t>(clients), turns_of_each);
  for (int& mine : left) run.Start([&](Membership& member) { return TakeTurns(member, run, turns, mine); });
  run.Drive();
  RunOutcome outcome = run.EndOfScripts();
  if (run.problem().empty()) {
    // The auditor takes a turn too, so that a lock that no client can take is seen.
    int last = 1;
    run.Start([&](Membership& member) { return TakeTurns(member, run, turns, last); });
    run.Drive();
  }
  outcome.problem = run.problem();
  return outcome;
}

}  // namespace farside::pool
