// A change in the queue of its key, from its arrival to its completion: the rules that no engine has to
// repeat.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/kit/change_queue.h"
#include "index/kit/context.h"
#include "pool/client.h"

namespace farside::index {

class QueuedChange {
 public:
  QueuedChange(pool::PoolClient& pool, ChangeQueue& queue, ChangeContext& context, Nanos backoff)
      : pool_(pool),
        context_(context),
        backoff_(backoff),
        own_value_(context.change.value),
        ticket_(queue, context.op.client(), context.hash, context.change) {}

  bool is_first() const { return ticket_.is_first(); }
  // Waits for the turn, without a pin. True: another change has coalesced this one, and its result stands in
  // the context. False: it is this one's turn, and it has coalesced the changes behind it.
  Task<bool> AwaitTurn();

  // An attempt has met changes by other clients.
  void CountOutpaced() { ++outpaced_; }
  Error Outpaced() const;
  // After an attempt that ended with `error`; no pin may be held. Ends with an error if there should be no
  // further attempt; then the passengers have it too.
  Task<Done> AwaitRetry(Error error);

  // The change is done, with the result in the context.
  void Complete() {
    if (ticket_.has_passengers()) ticket_.Complete(context_.result);
  }
  // The operation is destroyed on the way. Passengers of a change that may have had an effect are told that
  // its outcome is unknown; those of one that cannot have had any wait for their own turns.
  void GiveUp(bool may_have_effect);
  bool has_passengers() const { return ticket_.has_passengers(); }

 private:
  pool::PoolClient& pool_;
  ChangeContext& context_;
  const Nanos backoff_;
  const std::string_view own_value_;
  std::string last_value_;  // of the passengers
  std::optional<Nanos> waiting_since_;
  uint64_t outpaced_ = 0;  // attempts
  ChangeTicket ticket_;
};

}  // namespace farside::index
