// The memory of a node as one of its threads sees it, which does not wait for a line for ever, and tells what
// it holds itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "base/clock.h"
#include "fabric/memory/line_memory.h"
#include "fabric/memory/line_patience.h"
#include "fabric/memory/own_holds.h"
#include "fabric/memory/stuck_lines.h"

namespace farside::fabric::memory {

class ThreadMemory {
 public:
  // When `waits_end` is set, no thread waits for a line any more. All must outlive this.
  ThreadMemory(std::span<std::byte> region, StripeTable& stripes, const Clock& clock,
               const std::atomic<bool>& waits_end, StuckLines& stuck, OwnHolds& own_holds)
      : own_holds_(own_holds),
        patience_(clock, waits_end, stuck),
        memory_(region, stripes, own_hold_, &patience_) {
    own_holds_.Add(own_hold_);
  }
  ~ThreadMemory() { own_holds_.Remove(own_hold_); }
  ThreadMemory(const ThreadMemory&) = delete;
  ThreadMemory& operator=(const ThreadMemory&) = delete;

  // For one piece of work, such as a frame. It gives up on lines that are held too long (line_patience.h).
  LineMemory& Begin() {
    patience_.Restart();
    return memory_;
  }
  // Whether the piece of work has given up on a line.
  bool gave_up() const { return patience_.gave_up(); }

 private:
  OwnHolds& own_holds_;
  OwnHold own_hold_;
  LinePatience patience_;
  LineMemory memory_;
};

}  // namespace farside::fabric::memory
