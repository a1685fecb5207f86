// How long a node waits for lines. Its threads serve many clients, so none of them may wait for ever for
// holders that do not go on: a client of shared memory whose process was stopped in the middle of a trip, or
// a number that a process wrote there. And they wait once, not once for each piece of work (stuck_lines.h).
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "fabric/memory/line_memory.h"
#include "fabric/memory/stuck_lines.h"

namespace farside::fabric::memory {

inline constexpr std::string_view kStuckLine =
    "a line that it needs is held by a client of shared memory that does not go on";

// Of one thread, which does one piece of work after the other.
class LinePatience final : public Watch {
 public:
  // All waits of a piece of work together. Holders have a line for less than a microsecond, and what a dead
  // one held is freed within a second.
  static constexpr Nanos kLongest = std::chrono::seconds(2);

  // When `ended` is set, no wait lasts longer than it takes to look. All must outlive this.
  LinePatience(const Clock& clock, const std::atomic<bool>& ended, StuckLines& stuck)
      : clock_(clock), ended_(ended), stuck_(stuck) {}

  // Another piece of work begins.
  void Restart() {
    waited_ = Nanos{0};
    gave_up_ = false;
  }

  bool MayBeFinished(const Sequence& sequence, std::optional<Nanos>& since) override {
    if (gave_up_) return false;
    const Nanos now = clock_.Now();
    waited_ += now - since.value_or(now);
    since = now;
    if (waited_ >= kLongest) stuck_.Add(sequence);
    gave_up_ = ended_.load(std::memory_order_relaxed) || waited_ >= kLongest || stuck_.Contain(sequence);
    return !gave_up_;
  }

  // Whether a wait of this piece of work was given up.
  bool gave_up() const { return gave_up_; }

 private:
  const Clock& clock_;
  const std::atomic<bool>& ended_;
  StuckLines& stuck_;
  Nanos waited_{0};
  bool gave_up_ = false;
};

}  // namespace farside::fabric::memory
