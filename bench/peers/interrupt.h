// Ctrl-C, and the other polite ways to ask a program to end, as something that can be waited for. Nothing is
// cut short in the middle: a wait returns early, and everything that was started is ended on the way out.
#pragma once

#include <csignal>
#include <utility>

#include "base/clock.h"
#include "farside/result.h"

namespace farside::peers {

class Interrupt {
 public:
  // As long as it exists, SIGINT, SIGTERM and SIGHUP only reach this object; so call it before there are
  // other threads, and let it go on the same thread.
  static Result<Interrupt> Watch();
  Interrupt(Interrupt&& other) noexcept
      : signals_(std::exchange(other.signals_, -1)), before_(other.before_), came_(other.came_) {}
  Interrupt& operator=(Interrupt&&) = delete;
  ~Interrupt();

  // Returns when the time is over, or at once if the program was asked to end. By one thread at a time.
  Status WaitFor(Nanos time);
  bool came() const { return came_; }

 private:
  Interrupt(int signals, const sigset_t& before) : signals_(signals), before_(before) {}

  int signals_;      // a signalfd; -1: moved away
  sigset_t before_;  // the signals that this thread did not take before
  bool came_ = false;
};

}  // namespace farside::peers
