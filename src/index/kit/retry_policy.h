// How long an operation that meets others goes on trying, and under which pins.
//
// An operation that has to wait starts anew: without its pin, and with a sync if one is due. Otherwise the
// operations that wait for a lock would hold back the grace period that the lock's holder may need to get
// memory; and their own client, which does not sync meanwhile, would be taken for dead.
//
// An operation takes a new pin only if no catalog has changed since it began, as far as its client knows.
// While it holds no pin, a client that drops the table does not wait for it: the table's memory may be reused
// (catalog/5). The dropping client has waited until this client has synced, and a sync tells of the drop.
// What the operation knew of the table is void without the pin.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "pool/beats.h"
#include "pool/client.h"

namespace farside::index {

class RetryPolicy {
 public:
  // A pause is a part of the time that the operation has waited so far, so that it does not wait much longer
  // than it has to; and short, unless the operation seems to wait for a dead client.
  static constexpr int kPausesPerWait = 8;
  static constexpr Nanos kLongestPause = std::chrono::microseconds(50);
  // Of an operation that seems to wait for a dead client. A dead holder of a lock costs a lease; a client
  // that dies while it finishes what the first one left costs one more.
  static constexpr int kPausesPerLease = 64;
  static constexpr int kMostLeases = 16;

  static Nanos PauseAfter(Nanos waited, Nanos shortest, Nanos longest = kLongestPause) {
    return std::clamp(waited / kPausesPerWait, shortest, std::max(longest, shortest));
  }

  // `catalogs`: what pool.known_catalog_changes() was when the operation began. `began`: when it began to
  // wait, if it has waited already.
  RetryPolicy(pool::PoolClient& pool, fabric::NodeId node, Nanos backoff, uint64_t catalogs,
              std::optional<Nanos> began = std::nullopt)
      : pool_(pool),
        catalogs_(catalogs),
        lease_(pool.member(node).options().lease),
        backoff_(backoff),
        began_(began.has_value() ? *began : pool.client().Now()) {}

  // Whether an attempt that ended with this error is worth another one.
  bool Allows(const Error& error) const {
    return error.code() == ErrorCode::kContended && pool_.client().Now() - began_ < kMostLeases * lease_;
  }
  // After an attempt that ended with `error`, and before the next pin; no pin may be held. Ends with an error
  // if there should be no further attempt.
  Task<Done> AwaitRetry(fabric::Op& op, Error error) const;
  // The same, of a walk through the whole table: it keeps its pin, and gives its signs of life itself.
  Task<Done> AwaitRetryPinned(fabric::Op& op, Error error, pool::Beats& beats) const;
  // Ends with the error if a new pin must not be taken.
  static Status CheckCatalogs(pool::PoolClient& pool, uint64_t catalogs);

 private:
  // The pause before the next attempt. Ends with an error if there should be none.
  Result<Nanos> PauseBeforeRetry(fabric::Op& op, Error error) const;

  pool::PoolClient& pool_;
  const uint64_t catalogs_;
  const Nanos lease_;
  const Nanos backoff_;
  const Nanos began_;
};

// `attempt` takes a pin, tries from the beginning, and releases the pin whatever comes of it; the last
// attempt has failed with `error`.
template <class T, class Attempt>
Task<T> WithRetries(fabric::Op& op, RetryPolicy policy, Error error, Attempt attempt) {
  while (true) {
    co_await policy.AwaitRetry(op, std::move(error));
    Result<T> outcome = co_await attempt().Outcome();
    if (outcome.ok()) co_return std::move(*outcome);
    error = outcome.error();
  }
}

}  // namespace farside::index
