#include "base/clock.h"

namespace farside {

Nanos SteadyClock::Now() const {
  return std::chrono::duration_cast<Nanos>(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace farside
