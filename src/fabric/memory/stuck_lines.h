// The lines on which a thread of a node has given up, so that no other thread, and no later piece of work,
// waits for them again.
//
// A line is stuck as long as its sequence has the value at which a thread has given up: once it is freed and
// taken again, it has another one. (A client that only reads puts the old value back. So Forget drops lines
// that are not stuck any more; if the client takes one again before that, a waiting thread gives up early.)
// A holder that does not go on with one line does not go on with others that it holds at that moment.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "fabric/memory/line_memory.h"

namespace farside::fabric::memory {

// Safe from any thread.
class StuckLines {
 public:
  // The stripes must outlive this.
  explicit StuckLines(const StripeTable& stripes) : stripes_(stripes) {}

  bool Contain(const Sequence& sequence) const {
    const uint64_t held = sequence.load(std::memory_order_relaxed);
    return !IsFree(held) && held_[IndexOf(sequence)].load(std::memory_order_relaxed) == held;
  }
  // With all others that the same holder has now.
  void Add(const Sequence& sequence) {
    const uint64_t holder = sequence.load(std::memory_order_relaxed) & kHolderMask;
    if (holder == 0) return;
    for (size_t stripe = 0; stripe < StripeTable::kStripes; ++stripe) {
      const uint64_t value = stripes_.sequences[stripe].load(std::memory_order_relaxed);
      if ((value & kHolderMask) == holder) held_[stripe].store(value, std::memory_order_relaxed);
    }
  }
  // Now and then.
  void Forget() {
    for (size_t stripe = 0; stripe < StripeTable::kStripes; ++stripe) {
      uint64_t held = held_[stripe].load(std::memory_order_relaxed);
      if (held != 0 && held != stripes_.sequences[stripe].load(std::memory_order_relaxed))
        held_[stripe].compare_exchange_strong(held, 0, std::memory_order_relaxed);
    }
  }

 private:
  size_t IndexOf(const Sequence& sequence) const {
    return static_cast<size_t>(&sequence - stripes_.sequences.data());
  }

  const StripeTable& stripes_;
  std::array<std::atomic<uint64_t>, StripeTable::kStripes> held_{};  // 0: not stuck
};

}  // namespace farside::fabric::memory
