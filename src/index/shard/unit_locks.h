// Locks of units. The holder of one may change the unit while a resize is under way, split it, and insert
// keys of it into other levels.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/kit/lock_release.h"
#include "index/shard/context.h"
#include "pool/client.h"

namespace farside::index::shard {

class Splitter;

class UnitLocks {
 public:
  // `backoff`: the first pause of a client that waits for a lock. `splitter` finishes what dead holders have
  // begun.
  UnitLocks(pool::PoolClient& pool, Nanos backoff, Splitter& splitter)
      : pool_(pool), backoff_(backoff), splitter_(splitter) {}

  // Takes the lock of a unit and READs behind it in the same trip. kContended if another client holds it for
  // longer than is worth waiting for with a pin.
  Task<Done> Lock(Access at, uint64_t unit, std::vector<fabric::ReadIntoVerb> reads);
  // One attempt.
  Task<bool> TryLock(Access at, uint64_t unit);
  void Unlock(const Access& at, uint64_t unit);
  // Waits until no client splits the unit, or (if it is new) the unit that it comes from; finishes the split
  // of a dead client. No lock may be held.
  Task<Done> AwaitSplit(Access at, uint64_t unit, bool is_new);

  // For trips that unlock together with something else.
  LockRelease ReleaseOf(const Partition& part, uint64_t unit) const;

 private:
  // The word of a lock that this client holds.
  uint64_t HeldBySelf(const Partition& part, uint64_t unit) const;
  // From a holder that is gone. False: another client took it first.
  Task<bool> TakeOver(Access at, uint64_t unit, uint64_t held);

  pool::PoolClient& pool_;
  const Nanos backoff_;
  Splitter& splitter_;
};

}  // namespace farside::index::shard
