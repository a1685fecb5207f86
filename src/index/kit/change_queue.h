// The queue of the changes that one client has in flight: those of one key go one at a time. At once they
// would make each other's CAS fail, and each failure costs trips; a client with many operations in flight
// meets itself on popular keys.
//
// A change that has waited may coalesce the changes behind it: several puts (or updates) of one key that are
// all in flight may take effect at one moment, one after the other, and then only the last value is ever
// seen. So one change after the other serves a popular key, however many puts it gets. The coalesced changes
// are the passengers of the one that runs.
//
// If the change that runs fails, or is destroyed, before it can have had an effect, its passengers wait for
// their own turns again.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "fabric/client.h"
#include "farside/result.h"
#include "index/kit/carrying_ticket.h"
#include "index/kit/change.h"
#include "index/kit/key_queue.h"

namespace farside::index {

// Of one client.
class ChangeQueue {
 private:
  friend class ChangeTicket;
  KeyQueue tickets_;
};

class ChangeTicket : public CarryingTicket<ChangeTicket> {
 public:
  // `change` must outlive the ticket.
  ChangeTicket(ChangeQueue& queue, fabric::Client& client, uint64_t hash, const Change& change)
      : CarryingTicket(queue.tickets_, client, hash), change_(change) {}

  // What came of the change, if another one has coalesced it.
  const std::optional<Result<Changed>>& result() const { return result_; }

  // Of a put or an update that has its turn: takes along the changes behind it, up to the first that differs
  // in its kind or its key. True: there are some, and `value` is the last one's.
  bool Coalesce(std::string& value) {
    assert(is_first() && !has_passengers());
    if (change_.kind != ChangeKind::kPut && change_.kind != ChangeKind::kUpdate) return false;
    const ChangeTicket* last = nullptr;
    for (ChangeTicket* other = NextOfKey(); other != nullptr; other = other->NextOfKey()) {
      if (other->change_.kind != change_.kind || other->change_.key != change_.key) break;
      TakeAlong(*other);
      last = other;
    }
    if (last != nullptr) value = last->change_.value;
    return last != nullptr;
  }
  // Gives the passengers their result. They took effect at the same moment, one after the other: behind a
  // put, the key is present.
  void Complete(const Result<Changed>& result) {
    ForEachPassenger([&result](ChangeTicket& other) {
      other.result_ = result;
      if (result.ok() && other.change_.kind == ChangeKind::kPut)
        (*other.result_)->was_present = (*other.result_)->told = true;
      other.Dismiss();
    });
  }

 private:
  const Change& change_;
  std::optional<Result<Changed>> result_;
};

}  // namespace farside::index
