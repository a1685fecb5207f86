// A readable record of what happened in a simulated world, one line per event. The same seed gives the
// same bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "fabric/address.h"

namespace farside::fabric::sim {

class Trace {
 public:
  void Add(Nanos now, ClientId client, std::string_view what);

  const std::vector<std::string>& lines() const { return lines_; }
  std::string ToString() const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace farside::fabric::sim
