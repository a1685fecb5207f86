// Fencing between threads: how one client cuts off another that may be in the middle of a trip.
//
//   victim                               fencer
//   turn = odd                           closed = true
//   if (!closed) change far memory       if (turn is odd) wait until it has moved
//   turn = even
//
// INVARIANT embedded/1: when Close and AwaitTurn have returned, the victim changes far memory no more, and
// everything it has changed is visible to the fencer. The accesses of the first two lines are sequentially
// consistent: either the victim finds the gate closed, or the fencer finds the odd turn and waits it out.
// Storing the even turn releases the victim's changes to the fencer.
//
// INVARIANT embedded/2: nobody waits for another gate while inside its own. So two clients may fence each
// other at the same time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "fabric/address.h"

namespace farside::fabric::embedded {

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

  // ---- by anyone
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  void Close() { closed_.store(true, std::memory_order_seq_cst); }
  // After Close: waits until the client has left, if it was inside. If it enters anew, it finds the gate closed.
  void AwaitTurn() const {
    const uint64_t turn = turn_.load(std::memory_order_seq_cst);
    if (turn % 2 == 0) return;
    while (turn_.load(std::memory_order_acquire) == turn) std::this_thread::yield();
  }

 private:
  std::atomic<uint64_t> turn_{0};  // odd: the client is inside
  uint64_t own_turn_ = 0;          // the same number, for the client alone
  std::atomic<bool> closed_{false};
};

// The gates of all clients that are connected. Safe from any thread.
class GateRegistry {
 public:
  struct Registration {
    ClientId id;
    std::shared_ptr<Gate> gate;  // shared: a fencer may still wait at the gate of a client that departs
  };

  // A new client, with an id that was never given before; kNone if there are no more ids.
  Registration Add() {
    const std::scoped_lock lock(mutex_);
    if (last_id_ == kLastId) return {ClientId::kNone, nullptr};
    const auto id = static_cast<ClientId>(++last_id_);
    return {id, gates_.emplace(id, std::make_shared<Gate>()).first->second};
  }
  void Remove(ClientId id) {
    const std::scoped_lock lock(mutex_);
    gates_.erase(id);
  }
  // Null: such a client never was, or has departed.
  std::shared_ptr<Gate> Find(ClientId id) {
    const std::scoped_lock lock(mutex_);
    const auto found = gates_.find(id);
    return found == gates_.end() ? nullptr : found->second;
  }

 private:
  static constexpr uint32_t kLastId = ~uint32_t{0};

  std::mutex mutex_;
  std::unordered_map<ClientId, std::shared_ptr<Gate>> gates_;
  uint32_t last_id_ = 0;
};

}  // namespace farside::fabric::embedded
