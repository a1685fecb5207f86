// Turns: of the changes of one key that one client has in flight, one goes at a time, in the order in which they came. At
// once they would only make each other's CAS fail, and each failure costs trips; clients with many operations in flight
// meet themselves on the keys that everybody likes.
//
//   KeyQueue::Ticket ticket(queue, client, hash, change);
//   if (!ticket.is_first()) {
//     co_await ticket;
//     if (ticket.outcome().has_value()) ...    // somebody has carried it
//   }
//   ...                                        until the ticket is gone
//
// Whoever has waited may carry those behind it that say the same with another value: several puts that are all under way
// may take effect at one moment, one after the other, and then only the last value is ever seen. So a hot key takes as
// many puts as there are, by one change after another.
//
// If whoever carries others fails, or is given up, before anything can have come of it, they wait for their own turns again.
//
// Nobody who has a turn waits for another one of the same turns, so nobody waits in a circle. Who waits goes on by a timer that is due at once,
// not inside of whoever ends.
#pragma once

#include <array>
#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fabric/client.h"
#include "farside/result.h"
#include "index/kit/change.h"

namespace farside::index {

// Of one client.
class KeyQueue {
 public:
  class Ticket;

 private:
  static constexpr size_t kLists = 256;
  // Those in flight, oldest first, in the list of their hash.
  std::array<Ticket*, kLists> lists_{};
};

class KeyQueue::Ticket {
 public:
  // `change` must stay for as long as the turn.
  Ticket(KeyQueue& queue, fabric::Client& client, uint64_t hash, const Change& change)
      : list_(queue.lists_[hash % KeyQueue::kLists]), client_(client), hash_(hash), change_(change) {
    Ticket** end = &list_;
    while (*end != nullptr) {
      first_ &= (*end)->hash_ != hash || (*end)->outcome_.has_value();  // those are on their way out
      end = &(*end)->next_;
    }
    *end = this;
  }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (timer_.has_value()) client_.Abandon(*timer_);
    Release();
    Ticket** link = &list_;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
    if (first_) WakeNext();
  }

  bool is_first() const { return first_; }
  // What came of it, if another one has carried it.
  const std::optional<Result<Changed>>& outcome() const { return outcome_; }

  // Of a put or an update: takes those along that wait behind this one and are the same of the same key, up to the first
  // that is not. True: there are some, and `value` is the last one's.
  bool Coalesce(std::string& value) {
    assert(first_ && coalesced_ == 0);
    if (change_.kind != ChangeKind::kPut && change_.kind != ChangeKind::kUpdate) return false;
    const Ticket* last = nullptr;
    for (Ticket* other = NextOfHash(); other != nullptr; other = other->NextOfHash()) {
      if (other->change_.kind != change_.kind || other->change_.key != change_.key) break;
      other->leader_ = this;
      last = other;
      ++coalesced_;
    }
    if (last != nullptr) value = last->change_.value;
    return last != nullptr;
  }
  bool has_coalesced() const { return coalesced_ > 0; }
  // Tells those that it carries what came of them. They came at the same moment, one behind the other: behind a put, the key
  // is there.
  void Complete(const Result<Changed>& outcome) {
    ForEachCoalesced([&outcome](Ticket& other) {
      other.outcome_ = outcome;
      if (outcome.ok()) (*other.outcome_)->was_present |= other.change_.kind == ChangeKind::kPut;
      other.Resume();
    });
  }
  // Nothing has come of it: they wait for their own turns again.
  void Release() {
    ForEachCoalesced([](Ticket&) {});
  }

  bool await_ready() const { return first_; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void await_resume() { timer_.reset(); }

 private:
  Ticket* NextOfHash() const {
    Ticket* other = next_;
    while (other != nullptr && other->hash_ != hash_) other = other->next_;
    return other;
  }
  template <class Do>
  void ForEachCoalesced(Do act) {
    if (coalesced_ == 0) return;
    for (Ticket* other = NextOfHash(); other != nullptr; other = other->NextOfHash()) {
      if (other->leader_ != this) continue;
      other->leader_ = nullptr;
      act(*other);
    }
    coalesced_ = 0;
  }
  void WakeNext() {
    Ticket* next = NextOfHash();
    while (next != nullptr && next->outcome_.has_value()) next = next->NextOfHash();
    if (next == nullptr) return;
    next->first_ = true;
    next->Resume();
  }
  void Resume() {
    assert(waiter_ != nullptr && !timer_.has_value());
    timer_.emplace(client_.Now());
    timer_->waiter = waiter_;
    client_.Start(*timer_);
  }

  Ticket*& list_;
  fabric::Client& client_;
  const uint64_t hash_;
  const Change& change_;
  Ticket* next_ = nullptr;
  bool first_ = true;
  size_t coalesced_ = 0;      // by this one
  Ticket* leader_ = nullptr;  // of this one
  std::optional<Result<Changed>> outcome_;
  std::coroutine_handle<> waiter_;
  std::optional<fabric::Timer> timer_;  // while it is being resumed
};

}  // namespace farside::index
