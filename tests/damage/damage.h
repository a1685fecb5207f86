// Damages of far memory: what a bad memory node, a bad client or a bad device may leave behind.
//
// A damage hits words that mean something to a client more often than words of values: the words of a line
// that has something else than text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"

namespace farside::damage {

// The bytes of the regions, in the order of the nodes.
using Regions = std::vector<std::vector<std::byte>>;

// Where damages hit: the lines of a pool that hold more than text.
class Targets {
 public:
  explicit Targets(const Regions& regions);

  struct Line {
    size_t node = 0;
    uint64_t offset = 0;
  };
  // Nearly always a line that holds something; sometimes any.
  Line Choose(Random& random) const;

 private:
  std::vector<uint64_t> region_bytes_;
  std::vector<Line> lines_;
};

// Damages the regions in some of the ways that damage.cc lists. Returns what was done, for reports.
std::string Damage(Regions& regions, const Targets& targets, Random& random);

}  // namespace farside::damage
