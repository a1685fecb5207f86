// A gate: how one client cuts off another that may be in the middle of a trip.
//
//   victim                               fencer
//   turn = odd                           closed = true
//   if (!closed) change far memory       if (turn is odd) wait until it has moved
//   turn = even
//
// INVARIANT gate/1: when Close and AwaitTurn have returned, the victim changes far memory no more, and
// everything it has changed is visible to the fencer. The accesses of the first two lines are sequentially
// consistent: either the victim finds the gate closed, or the fencer finds the odd turn and waits it out.
// Storing the even turn releases the victim's changes to the fencer.
//
// INVARIANT gate/2: no client waits for another gate while inside its own. So two clients may fence each
// other at the same time.
//
// Plain memory without pointers, open when it is zero, so that it may also stand in memory that processes
// share. There a client may die inside: then its turn never ends, and only a daemon that knows that the
// process is gone may go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include "fabric/address.h"

namespace farside::fabric::memory {

// Written by one client only, but for `closed_`.
class alignas(kLineBytes) Gate {
 public:
  // ---- by the client
  // True: it may change far memory until it leaves. False: the gate is closed; it must leave all the same.
  bool Enter() {
    turn_.store(++own_turn_, std::memory_order_seq_cst);
    return !closed_.load(std::memory_order_seq_cst);
  }
  void Leave() { turn_.store(++own_turn_, std::memory_order_release); }
  // Whether it has entered and not left, be it that it found the gate closed.
  bool inside() const { return own_turn_ % 2 != 0; }

  // ---- by any thread
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  void Close() { closed_.store(true, std::memory_order_seq_cst); }
  // After Close: the turn that has to end first, if the client is inside. If it enters anew, it finds the
  // gate closed.
  std::optional<uint64_t> OpenTurn() const {
    const uint64_t turn = turn_.load(std::memory_order_seq_cst);
    if (turn % 2 == 0) return std::nullopt;
    return turn;
  }
  bool HasEnded(uint64_t turn) const { return turn_.load(std::memory_order_acquire) != turn; }
  // After Close: waits until the client has left, if it was inside.
  void AwaitTurn() const {
    const std::optional<uint64_t> turn = OpenTurn();
    if (!turn.has_value()) return;
    while (!HasEnded(*turn)) std::this_thread::yield();
  }

 private:
  std::atomic<uint64_t> turn_{0};  // odd: the client is inside
  uint64_t own_turn_ = 0;          // the same number, for the client alone
  std::atomic<bool> closed_{false};
};

}  // namespace farside::fabric::memory
