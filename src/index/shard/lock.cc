// Locks of units: who holds one may change the unit while a resize is under way, split it, and insert keys of it into other
// levels.
#include <fmt/format.h>

#include <algorithm>

#include "index/shard/mutants.h"
#include "index/shard/shard.h"

namespace farside::index::shard {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using pool::Standing;

namespace {

// A holder lets go after two trips or so. Only if it does not is it worth a trip to ask whether it lives.
constexpr int kAttemptsUntilAsking = 3;
constexpr int kMostAttempts = 6;

}  // namespace

uint64_t Table::LockedBySelf(const Partition& part, uint64_t unit) const {
  return UnitLock(pool_.member(part.node()).self(), unit).word();
}

Task<Done> Table::Lock(Op& op, Partition& part, uint64_t unit, std::vector<fabric::ReadIntoVerb> reads) {
  pool::Membership& member = pool_.member(part.node());
  const FarAddr at = part.LockAt(unit);
  const uint64_t mine = LockedBySelf(part, unit);
  Nanos pause = options_.backoff;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    fabric::Batch trip(op, Order::kInOrder);
    trip.Add(Cas(at, 0, mine));
    for (const fabric::ReadIntoVerb& read : reads) trip.Add(read);
    co_await trip;
    const uint64_t held = trip.Old(0);
    if (held == 0) co_return Done{};
    op.CountRetry();

    if (attempt >= kAttemptsUntilAsking) {
      const Standing standing = co_await member.StandingOf(op, UnitLock(held).owner());
      if (standing == Standing::kGone || Mutant(kLockBroken)) {
        // INVARIANT shard/8. If this client dies on the way, the lock still names the unit that is to be finished.
        const uint64_t taken = UnitLock(member.self(), UnitLock(held).unit()).word();
        const uint64_t old = co_await op.InOrder(Cas(at, held, taken));
        if (old != held) continue;
        Result<Done> finished = Done{};
        if (!Mutant(kNotFinished)) finished = co_await FinishSplit(op, part, UnitLock(held).unit()).Outcome();
        // What could not be finished waits for somebody else under the name of the dead.
        co_await op.InOrder(Cas(at, taken, finished.ok() ? 0 : held));
        if (!finished.ok()) co_return finished.error();
        continue;
      }
    }
    co_await op.Pause(pause);
    pause *= 2;
  }
  // Whoever waits longer lets go of its pin meanwhile (retry_policy.h): a resize may have to wait for it.
  co_return Error(ErrorCode::kContended, fmt::format("unit {} of the table is locked; retry later", unit));
}

Task<bool> Table::TryLock(Op& op, Partition& part, uint64_t unit) {
  const uint64_t old = co_await op.InOrder(Cas(part.LockAt(unit), 0, LockedBySelf(part, unit)));
  co_return old == 0;
}

// Nobody waits for it: the client's epoch does (pool/1).
void Table::Unlock(Op& op, Partition& part, uint64_t unit) {
  if (Mutant(kUnlockByWrite))
    return op.Detach(Order::kInOrder, fabric::WriteObject(part.LockAt(unit), uint64_t{0}));
  op.Detach(Order::kInOrder, Cas(part.LockAt(unit), LockedBySelf(part, unit), 0));
}

}  // namespace farside::index::shard
