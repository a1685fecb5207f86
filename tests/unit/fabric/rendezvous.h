// Brings two threads to the same point at the same moment, round after round, for tests of races.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace farside {

// No promise: a thread that waits too long goes on alone. So a test takes bounded time however the threads are
// scheduled, and must hold in rounds in which they did not meet. Whoever lags behind does not wait, and catches up.
class Rendezvous {
 public:
  // By the threads 0 and 1, with rounds that count up from 1.
  void Meet(size_t self, uint64_t round) {
    arrived_[self] = round;
    for (int spins = 0; arrived_[1 - self] < round && spins < kMaxSpins; ++spins) continue;
  }

 private:
  static constexpr int kMaxSpins = 2000;

  std::array<std::atomic<uint64_t>, 2> arrived_{};
};

}  // namespace farside
