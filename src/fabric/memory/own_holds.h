// Which sequences the threads of a node hold, in memory that is the node's own. All of them have the number
// kTheNode, and where processes share the sequences, any of these may write that number, too. Then a sequence
// is held in the node's name, and none of the node's threads will ever free it.
//
//   a thread of the node                 FreeStrays
//   1  finds the sequence free           a  finds the sequence held in the node's name
//   2  announces it                      b  looks at what is announced
//   3  takes it, or announces no more    c  not this one: frees it, if it still has the value of step a
//   4  frees it, one change higher
//   5  announces it no more
//
// INVARIANT own/1: what a thread of the node holds, only that thread frees. If step a finds the value of step
// 3, then step b finds what the thread announced in step 2, or after it. In the second case step c finds that
// the sequence has risen, because no two threads hold it at the same value: a thread that announces frees one
// change higher also what it has not changed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "fabric/address.h"
#include "fabric/memory/line_memory.h"

namespace farside::fabric::memory {

// What one thread has announced: stripes that are neighbours, also around the end of the table.
class alignas(kLineBytes) OwnHold {
 public:
  // How far two of them may lie apart.
  static constexpr uint64_t kReach = 23;

  // By the thread. Each releases what the thread did before.
  void Announce(uint64_t stripe) {
    uint64_t word = word_.load(std::memory_order_relaxed);
    if (word >> kBitsShift == 0) word = Distance(kReach, stripe);  // the first
    word_.store(word | BitOf(stripe, word), std::memory_order_release);
  }
  void Retract(uint64_t stripe) {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    word_.store(word & ~BitOf(stripe, word), std::memory_order_release);
  }

  // By any thread.
  bool Has(uint64_t stripe) const {
    const uint64_t word = word_.load(std::memory_order_acquire);
    return Distance(word & kFirstMask, stripe) < kBits && (word & BitOf(stripe, word)) != 0;
  }

 private:
  //   63..16                       15..0
  //   a bit for each stripe from   the first one on
  static constexpr int kBitsShift = 16;
  static constexpr uint64_t kBits = 64 - kBitsShift;
  static constexpr uint64_t kFirstMask = (uint64_t{1} << kBitsShift) - 1;
  static_assert(2 * kReach < kBits && StripeTable::kStripes <= kFirstMask);

  static uint64_t Distance(uint64_t from, uint64_t to) {
    return (to + StripeTable::kStripes - from) % StripeTable::kStripes;
  }
  static uint64_t BitOf(uint64_t stripe, uint64_t word) {
    return uint64_t{1} << (kBitsShift + Distance(word & kFirstMask, stripe));
  }

  std::atomic<uint64_t> word_{0};
};

// Those of all threads of a node.
class OwnHolds {
 public:
  // Before the thread announces anything.
  void Add(const OwnHold& hold) {
    const std::scoped_lock lock(mutex_);
    holds_.push_back(&hold);
  }
  void Remove(const OwnHold& hold) {
    const std::scoped_lock lock(mutex_);
    std::erase(holds_, &hold);
  }
  bool Have(uint64_t stripe) const {
    const std::scoped_lock lock(mutex_);
    return std::any_of(holds_.begin(), holds_.end(),
                       [stripe](const OwnHold* hold) { return hold->Has(stripe); });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<const OwnHold*> holds_;
};

}  // namespace farside::fabric::memory
