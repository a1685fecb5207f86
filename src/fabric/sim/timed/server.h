// A resource of the timed fabric: it serves one after the other, in the order in which they come.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace farside::fabric::sim {

// Virtual time. Fine enough for a byte on the wire (80 ps at 100 Gb/s), and good for a hundred days.
using Picos = int64_t;
inline constexpr Picos kPicosPerNano = 1000;

class Server {
 public:
  // A request comes at `at`, keeps the server busy for `service`, and is done when this returns. `latency` of
  // it is felt also if the server is idle; the rest only limits how much follows: a card works on many verbs
  // at a time, so one verb takes no longer because a thousand could not be done at once.
  Picos Serve(Picos at, Picos latency, Picos service) {
    free_ = std::max(at + latency, free_ + service);
    busy_ += service;
    ++served_;
    return free_;
  }

  // The request that is done at `at` takes longer than was known when it came. Requests that came since are
  // those of `Serve`'s caller to delay.
  void Extend(Picos at, Picos work) {
    free_ = std::max(at + work, free_ + work);
    busy_ += work;
  }

  // How long it was busy until `now`, since it was last reset.
  Picos Busy(Picos now) const { return std::max<Picos>(0, busy_ - std::max<Picos>(0, free_ - now)); }
  uint64_t served() const { return served_; }
  // Begins a new measurement. What waits already is part of it.
  void ResetUse(Picos now) {
    busy_ = std::max<Picos>(0, free_ - now);
    served_ = 0;
  }

 private:
  static constexpr Picos kLongAgo = std::numeric_limits<Picos>::min() / 2;

  Picos free_ = kLongAgo;  // when the last request so far is done
  Picos busy_ = 0;
  uint64_t served_ = 0;
};

}  // namespace farside::fabric::sim
