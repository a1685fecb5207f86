// Pauses of a coroutine that looks again and again whether something has come that resumes no coroutine. Each
// is a part of the time that it has waited so far: so it waits hardly longer than it has to, and no wait
// spins, even if a memory node hangs.
//
//   GrowingPause pause;
//   while (!lane.done()) co_await op.Pause(pause.Next());
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace farside::pool {

class GrowingPause {
 public:
  Nanos Next() {
    const Nanos pause = std::clamp<Nanos>(waited_ / kPausesPerWait, kShortest, kLongest);
    waited_ += pause;
    return pause;
  }
  // All pauses so far.
  Nanos waited() const { return waited_; }

 private:
  static constexpr int kPausesPerWait = 8;
  static constexpr Nanos kShortest = std::chrono::microseconds(1);
  static constexpr Nanos kLongest = std::chrono::milliseconds(1);

  Nanos waited_{0};
};

}  // namespace farside::pool
