// How long an operation that meets others goes on trying.
//
// An operation that has to wait starts anew: without its pin, and with a sync if one is due. Otherwise those who wait for a
// lock would keep others from their grace, while everybody waits for the lock of somebody who needs memory; and they would
// be taken for dead themselves.
//
// An operation takes a new pin only if no catalog has changed since it began, as far as it knows. Without its pin nobody
// waits for it: the table may be dropped and its memory be somebody else's (catalog/5). Whoever drops it has waited until
// this client has synced, and a sync tells of the drop. What the operation knew of the table is gone with the pin.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/mutant.h"
#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "pool/client.h"

namespace farside::index {

class RetryPolicy {
 public:
  // The longer somebody has waited, the longer it pauses: a part of that, so that it does not wait much longer than it has to.
  // But not for long, if it is not for somebody who is dead.
  static constexpr int kPausesPerWait = 8;
  static constexpr Nanos kLongestPause = std::chrono::microseconds(50);
  // Of somebody who waits for the dead. A dead holder of a lock costs a lease, and one that dies while it finishes what another
  // has left costs one more.
  static constexpr int kPausesPerLease = 64;
  static constexpr int kMostLeases = 16;

  static Nanos PauseAfter(Nanos waited, Nanos shortest, Nanos longest = kLongestPause) {
    return std::clamp(waited / kPausesPerWait, shortest, std::max(longest, shortest));
  }

  // `catalogs`: what pool.known_catalog_changes() was when the operation began. `began`: when that was, if it has waited for
  // something already. `pins_past_a_drop`: the engine's planted bug.
  RetryPolicy(pool::PoolClient& pool, fabric::NodeId node, Nanos backoff, uint64_t catalogs,
              MutantName pins_past_a_drop, std::optional<Nanos> began = std::nullopt)
      : pool_(pool),
        catalogs_(catalogs),
        pins_past_a_drop_(pins_past_a_drop),
        lease_(pool.member(node).options().lease),
        backoff_(backoff),
        began_(began.has_value() ? *began : pool.client().Now()) {}

  // Whether an attempt that ended with this error is worth another one.
  bool Allows(const Error& error) const {
    return error.code() == ErrorCode::kContended && pool_.client().Now() - began_ < kMostLeases * lease_;
  }
  // Before every new pin.
  bool MayPinAgain() const;
  static Error CatalogChanged() {
    return Error(ErrorCode::kContended, "a table was made or dropped while the operation waited; retry");
  }
  // No pin may be held. Others may wait for this client to sync.
  Task<Done> Wait(fabric::Op& op) {
    op.CountRetry();
    const pool::PoolClient::UnpinnedWait wait(pool_);
    const Nanos waited = pool_.client().Now() - began_;
    const Nanos longest = waited < lease_ / 8 ? kLongestPause : lease_ / kPausesPerLease;
    co_await op.Pause(PauseAfter(waited, backoff_, longest));
    pool_.RequestSync();
    co_await pool_.Maintain(op);
    co_return Done{};
  }

 private:
  pool::PoolClient& pool_;
  const uint64_t catalogs_;
  const MutantName pins_past_a_drop_;
  const Nanos lease_;
  const Nanos backoff_;
  const Nanos began_;
};

// `attempt` pins, tries from the beginning, and lets go of the pin whatever comes of it; the last one has failed with `error`.
template <class T, class Attempt>
Task<T> WithRetries(fabric::Op& op, RetryPolicy retries, Error error, Attempt attempt) {
  while (retries.Allows(error)) {
    co_await retries.Wait(op);
    if (!retries.MayPinAgain()) co_return RetryPolicy::CatalogChanged();
    Result<T> outcome = co_await attempt().Outcome();
    if (outcome.ok()) co_return std::move(*outcome);
    error = outcome.error();
  }
  co_return error;
}

}  // namespace farside::index
