// Turns: of the changes of one key that one client has in flight, one goes at a time, in the order in which they came. At
// once they would only make each other's CAS fail, and each failure costs trips; clients with many operations in flight
// meet themselves on the keys that everybody likes.
//
//   KeyTurn turn(turns, client, hash);
//   co_await turn;
//   ...                                   until the turn is gone
//
// Nothing is held meanwhile but the turn, so nobody waits in a circle. Who waits goes on by a timer that is due at once,
// not inside of whoever ends.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "fabric/client.h"

namespace farside::index {

class KeyTurn;

// Of one client.
class KeyTurns {
 private:
  friend class KeyTurn;
  static constexpr size_t kLists = 256;
  // Those in flight, oldest first, in the list of their hash.
  std::array<KeyTurn*, kLists> lists_{};
};

class KeyTurn {
 public:
  KeyTurn(KeyTurns& turns, fabric::Client& client, uint64_t hash)
      : list_(turns.lists_[hash % KeyTurns::kLists]), client_(client), hash_(hash) {
    KeyTurn** end = &list_;
    while (*end != nullptr) {
      first_ &= (*end)->hash_ != hash;
      end = &(*end)->next_;
    }
    *end = this;
  }
  KeyTurn(const KeyTurn&) = delete;
  KeyTurn& operator=(const KeyTurn&) = delete;
  ~KeyTurn() {
    if (timer_.has_value()) client_.Abandon(*timer_);
    KeyTurn** link = &list_;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
    if (first_) WakeNext();
  }

  bool is_first() const { return first_; }

  bool await_ready() const { return first_; }
  void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
  void await_resume() { timer_.reset(); }

 private:
  void WakeNext() {
    for (KeyTurn* other = next_; other != nullptr; other = other->next_) {
      if (other->hash_ != hash_) continue;
      other->first_ = true;
      if (other->waiter_ != nullptr) other->Resume();
      return;
    }
  }
  void Resume() {
    timer_.emplace(client_.Now());
    timer_->waiter = waiter_;
    client_.Start(*timer_);
  }

  KeyTurn*& list_;
  fabric::Client& client_;
  const uint64_t hash_;
  KeyTurn* next_ = nullptr;
  bool first_ = true;
  std::coroutine_handle<> waiter_;
  std::optional<fabric::Timer> timer_;  // while it is being resumed
};

}  // namespace farside::index
