// How even a throughput is: the slowest stretch of a run against its steady rate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tools/bench/client.h"
#include "tools/paper/plot.h"

namespace farside::tools::paper {

struct Evenness {
  double steady = 0;   // operations per second: what one in ten stretches exceeds
  double slowest = 0;  // operations per second, in the slowest stretch
  Nanos slowest_at{0};
  double share() const { return steady > 0 ? slowest / steady : 0; }
};

// Every stretch of `length` windows counts, wherever it begins. The last window is left out, since the run
// ended within it. All zero if the run is shorter than a stretch.
Evenness MeasureEvenness(std::span<const uint64_t> windows, Nanos window, size_t length);

// Throughput over time, with the steps of the table's growth marked.
Plot PlotOf(const BenchTally& tally, Nanos window, std::string title);

}  // namespace farside::tools::paper
