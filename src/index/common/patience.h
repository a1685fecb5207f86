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
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "pool/client.h"

namespace farside::index {

class Patience {
 public:
  // `catalogs`: what pool.known_catalog_changes() was when the operation began. `began`: when that was, if it has waited for
  // something already.
  Patience(pool::PoolClient& pool, fabric::NodeId node, Nanos backoff, uint64_t catalogs,
           std::optional<Nanos> began = std::nullopt)
      : pool_(pool),
        catalogs_(catalogs),
        lease_(pool.member(node).options().lease),
        backoff_(backoff),
        began_(began.has_value() ? *began : pool.client().Now()) {}

  // Whether an attempt that ended with this error is worth another one. A dead holder of a lock costs a lease, and one
  // that dies while it finishes what another has left costs one more.
  bool Allows(const Error& error) const {
    return error.code() == ErrorCode::kContended && pool_.client().Now() - began_ < kMostLeases * lease_;
  }
  // Before every new pin.
  bool MayPinAgain() const { return pool_.known_catalog_changes() == catalogs_; }
  static Error CatalogChanged() {
    return Error(ErrorCode::kContended, "a table was made or dropped while the operation waited; retry");
  }
  // The longer it has waited, the longer it pauses: a fraction of that, so that it does not wait much longer than it has to.
  // But not for long, if it is not for somebody who is dead: others may wait for this client to sync. No pin may be held.
  Task<Done> Wait(fabric::Op& op) {
    op.CountRetry();
    const pool::PoolClient::Stay stay(pool_);
    const Nanos waited = pool_.client().Now() - began_;
    const Nanos longest = waited < lease_ / 8 ? kLongestPause : lease_ / kPausesPerLease;
    co_await op.Pause(std::clamp(waited / kPausesPerWait, backoff_, std::max(longest, backoff_)));
    pool_.RequestSync();
    co_await pool_.Maintain(op);
    co_return Done{};
  }

 private:
  static constexpr int kPausesPerWait = 8;
  static constexpr int kPausesPerLease = 64;
  static constexpr Nanos kLongestPause = std::chrono::microseconds(50);
  static constexpr int kMostLeases = 16;

  pool::PoolClient& pool_;
  const uint64_t catalogs_;
  const Nanos lease_;
  const Nanos backoff_;
  const Nanos began_;
};

}  // namespace farside::index
