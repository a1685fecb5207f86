// Time is passed in, so that the simulator decides what time it is and a run can be replayed. Below `tools`,
// the clock of the machine is read only by fabrics and servers of nodes that were given no clock, and by
// sockets that wait.
#pragma once

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>

namespace farside {

// A span of time, or a point in time counted from the clock's own start. A standard type, so that units
// are spelled (5ms, 2us) and mixing them is the compiler's business; `count()` is the plain number.
using Nanos = std::chrono::nanoseconds;

// Safe to read from any thread. Never goes backwards.
class Clock {
 public:
  virtual ~Clock() = default;

  // Time since a start that is arbitrary but does not change. Only differences mean something.
  virtual Nanos Now() const = 0;
};

// The machine's monotonic clock. Its start is the same for all processes of the machine until it reboots.
class SteadyClock final : public Clock {
 public:
  Nanos Now() const override;
};

// A clock that stands still until it is told otherwise; for tests and for the simulator.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Nanos start = Nanos{0}) : now_(start.count()) {}

  Nanos Now() const override { return Nanos{now_.load(std::memory_order_relaxed)}; }

  // By one thread at a time.
  void Advance(Nanos by) { Set(Now() + by); }
  void Set(Nanos now) {
    assert(now >= Now() && "a clock never goes backwards");
    now_.store(now.count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<int64_t> now_;  // atomic for the readers, such as a logger that several threads share
};

}  // namespace farside
