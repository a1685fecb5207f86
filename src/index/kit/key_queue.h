// A keyed wait queue: of the operations of one client that name the same key, one goes at a time, in the
// order in which they came.
//
//   Ticket ticket(queue, client, key);
//   if (!ticket.is_first()) co_await ticket;
//   ...                                        until the ticket is destroyed
//
// An operation that has its turn waits for no other ticket of the same queue, so no two operations wait for
// each other. Waiters resume through a zero-delay timer, never on the finisher's stack.
#pragma once

#include <array>
#include <cassert>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric/client.h"

namespace farside::index {

class Ticket;

// Of one client.
class KeyQueue {
 private:
  friend class Ticket;
  static constexpr size_t kLists = 256;
  // Tickets, oldest first, in the list of their key.
  std::array<Ticket*, kLists> lists_{};
};

class Ticket {
 public:
  Ticket(KeyQueue& queue, fabric::Client& client, uint64_t key)
      : list_(queue.lists_[key % KeyQueue::kLists]), client_(client), key_(key) {
    Ticket** end = &list_;
    while (*end != nullptr) {
      first_ &= (*end)->key_ != key || (*end)->leaving_;
      end = &(*end)->next_;
    }
    *end = this;
  }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (timer_.has_value()) client_.Abandon(*timer_);
    Ticket** link = &list_;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
    if (first_) WakeNext();
  }

  // Whether it has its turn.
  bool is_first() const { return first_; }

  bool await_ready() const { return first_; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void await_resume() { timer_.reset(); }

 protected:
  // The next ticket of the same key.
  Ticket* Next() const {
    Ticket* other = next_;
    while (other != nullptr && other->key_ != key_) other = other->next_;
    return other;
  }
  // Resumes the waiter although it has no turn: it has nothing left to do in the queue, and is about to leave
  // it.
  void Dismiss() {
    leaving_ = true;
    Resume();
  }

 private:
  void WakeNext() {
    Ticket* next = Next();
    while (next != nullptr && next->leaving_) next = next->Next();
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
  const uint64_t key_;
  Ticket* next_ = nullptr;
  bool first_ = true;
  bool leaving_ = false;
  std::coroutine_handle<> waiter_;
  std::optional<fabric::Timer> timer_;  // while it is being resumed
};

}  // namespace farside::index
