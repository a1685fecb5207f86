#include "index/shard/unit_locks.h"

#include <fmt/format.h>

#include <bit>

#include "index/shard/mutants.h"
#include "index/shard/splitter.h"

namespace farside::index::shard {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Order;
using pool::Standing;

namespace {

// A holder releases its lock after two trips or so. Only if it does not is it worth a trip to ask whether it
// lives.
constexpr int kAttemptsUntilAsking = 3;
constexpr int kMostAttempts = 6;

}  // namespace

uint64_t UnitLocks::HeldBySelf(const Partition& part, uint64_t unit) const {
  return UnitLock(pool_.member(part.node()).self(), unit).word();
}

LockRelease UnitLocks::ReleaseOf(const Partition& part, uint64_t unit) const {
  return LockRelease(part.LockAt(unit), HeldBySelf(part, unit));
}

Task<Done> UnitLocks::Lock(Access at, uint64_t unit, std::vector<fabric::ReadIntoVerb> reads) {
  const uint64_t mine = HeldBySelf(at.part, unit);
  Nanos pause = backoff_;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    fabric::Batch trip(at.op, Order::kInOrder);
    trip.Add(Cas(at.part.LockAt(unit), 0, mine));
    for (const fabric::ReadIntoVerb& read : reads) trip.Add(read);
    co_await trip;
    const uint64_t held = trip.Old(0);
    if (held == 0) co_return Done{};
    at.op.CountRetry();

    if (attempt >= kAttemptsUntilAsking) {
      pool::Membership& member = pool_.member(at.part.node());
      const Standing standing = co_await member.StandingOf(at.op, UnitLock(held).owner());
      if (standing == Standing::kGone || Mutant(kLockBroken)) {
        co_await TakeOver(at, unit, held);
        continue;
      }
    }
    co_await at.op.Pause(pause);
    pause *= 2;
  }
  // An operation that waits longer releases its pin meanwhile (kit/retry_policy.h): a resize may have to wait
  // for it.
  co_return Error(ErrorCode::kContended, fmt::format("unit {} of the table is locked; retry later", unit));
}

// INVARIANT shard/8. If this client dies on the way, the lock still names the unit that is to be finished.
Task<bool> UnitLocks::TakeOver(Access at, uint64_t unit, uint64_t held) {
  const FarAddr lock_at = at.part.LockAt(unit);
  const uint64_t taken = UnitLock(pool_.member(at.part.node()).self(), UnitLock(held).unit()).word();
  const uint64_t old = co_await at.op.InOrder(Cas(lock_at, held, taken));
  if (old != held) co_return false;
  Result<Done> finished = Done{};
  if (!Mutant(kNotFinished)) finished = co_await splitter_.FinishSplit(at, UnitLock(held).unit()).Outcome();
  // What could not be finished waits for another client, with the dead client as the lock's holder.
  co_await at.op.InOrder(Cas(lock_at, taken, finished.ok() ? 0 : held));
  if (!finished.ok()) co_return finished.error();
  co_return true;
}

Task<bool> UnitLocks::TryLock(Access at, uint64_t unit) {
  const uint64_t old = co_await at.op.InOrder(Cas(at.part.LockAt(unit), 0, HeldBySelf(at.part, unit)));
  co_return old == 0;
}

// It is not waited for: the client's epoch stays until it has landed (pool/1).
void UnitLocks::Unlock(const Access& at, uint64_t unit) { ReleaseOf(at.part, unit).Detach(at.op); }

// The splitting client holds the lock of the unit that it splits.
Task<Done> UnitLocks::AwaitSplit(Access at, uint64_t unit, bool is_new) {
  const uint64_t locked = is_new ? unit & ~std::bit_floor(unit) : unit;
  co_await Lock(at, locked, {});
  Unlock(at, locked);
  co_return Done{};
}

}  // namespace farside::index::shard
