// Brings two threads to the same point at the same moment, round after round, for tests of races.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace farside {

// No promise: a thread that waits too long goes on alone. So a test takes bounded time however the threads
// are scheduled, and must hold in rounds in which they did not meet. A thread that lags behind does not wait,
// and catches up.
class Rendezvous {
 public:
  // By the threads 0 and 1, with rounds that count up from 1.
  void Meet(size_t self, uint64_t round) {
    arrived_[self] = round;
    for (int spins = 0; arrived_[1 - self] < round && spins < kMaxSpins; ++spins) continue;
    // The thread that came last needs some time to tell the other. Different delays let one round or another
    // hit the moment that matters.
    for (uint64_t delay = round % kDelays; self == 1 && delay > 0; --delay) arrived_[self].load();
  }

 private:
  static constexpr int kMaxSpins = 500;
  static constexpr uint64_t kDelays = 101;

  std::array<std::atomic<uint64_t>, 2> arrived_{};
};

}  // namespace farside
