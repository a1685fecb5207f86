// Clients that take turns under one lock in far memory, and die with it.
//
// The lock guards two words that are always equal, except in the middle of somebody's turn. A turn adds one to
// both, with a trip for each step. So whoever finds them different, though nobody is said to have died with the lock,
// or finds fewer turns than were completed, has met somebody who was inside at the same time.
#pragma once

#include <algorithm>
#include <string>

#include "tests/pool/pool_run.h"

namespace farside::pool {

inline constexpr uint64_t kTestLock = 128 * 1024;
inline constexpr uint64_t kFirstWord = kTestLock + 64;
inline constexpr uint64_t kSecondWord = kTestLock + 128;

struct Turns {
  uint64_t completed = 0;
  uint64_t taken_over = 0;
};

inline Task<Done> TakeTurn(fabric::Op& op, Membership& member, PoolRun& run, Turns& turns) {
  const Acquired acquired = co_await AcquireLock(op, member, kTestLock);
  const uint64_t completed = turns.completed;
  auto [first, second] = co_await op.InOrder(fabric::Read<uint64_t>(member.At(kFirstWord)),
                                             fabric::Read<uint64_t>(member.At(kSecondWord)));
  if (acquired == Acquired::kTakenOver) ++turns.taken_over;
  if (acquired == Acquired::kFree && first != second)
    run.Problem("somebody's half turn is seen under the lock");
  if (std::max(first, second) < completed) run.Problem("a completed turn is lost");
  const uint64_t next = std::max(first, second) + 1;
  co_await op.InOrder(fabric::WriteObject(member.At(kFirstWord), next));
  co_await op.InOrder(fabric::WriteObject(member.At(kSecondWord), next));
  ++turns.completed;
  co_await ReleaseLock(op, member, kTestLock);
  co_return Done{};
}

inline Task<Done> TakeTurns(Membership& member, PoolRun& run, Turns& turns, int& left) {
  while (left > 0) {
    fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
    --left;
    co_await TakeTurn(op, member, run, turns);
  }
  co_return Done{};
}

inline RunOutcome RunLocks(fabric::sim::SimOptions options, int clients = 3, int turns_of_each = 2) {
  PoolRun run(std::move(options));
  Turns turns;
  std::list<int> left(static_cast<size_t>(clients), turns_of_each);
  for (int& mine : left) run.Start([&](Membership& member) { return TakeTurns(member, run, turns, mine); });
  run.Drive();
  RunOutcome outcome = run.EndOfScripts();
  if (run.problem().empty()) {
    // The auditor takes a turn too, so that a lock that nobody can take is seen.
    int last = 1;
    run.Start([&](Membership& member) { return TakeTurns(member, run, turns, last); });
    run.Drive();
  }
  outcome.problem = run.problem();
  return outcome;
}

}  // namespace farside::pool
