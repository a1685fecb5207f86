// Runs a benchmark: makes a pool and clients, loads, warms up, runs what is measured, and measures the
// table's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/service.h"
#include "farside/record.h"
#include "farside/result.h"
#include "tools/bench/client.h"
#include "tools/bench/options.h"
#include "tools/bench/table.h"
#include "tools/bench/world.h"

namespace farside::tools {

struct BenchRun {
  std::unique_ptr<BenchTally> load;  // null if there was no need for one
  std::unique_ptr<BenchTally> run;   // the measured one; with workload load, the load
  BenchMemory memory;
  TableStats stats;
  uint64_t records = 0;  // in the table at the end
  std::vector<BenchFigure> model;
  std::vector<BenchUse> uses;   // in the measured run
  fabric::FlushCounts flushed;  // likewise
};

// Called now and then: what is going on, and how far it has come, in which unit.
using BenchProgress =
    std::function<void(std::string_view what, uint64_t done, uint64_t total, std::string_view unit)>;

// Asked now and then: whether to end before the time.
using BenchStop = std::function<bool()>;

// kOutOfMemory and other errors are one line that says where it happened. However it ends, a pool that stays
// is left in good order: without the clients of the benchmark, and without its table.
Result<BenchRun> RunBench(
    const BenchPlan& plan, const BenchProgress& progress, const BenchStop& stop = [] { return false; });

}  // namespace farside::tools
