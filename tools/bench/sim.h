// The simulated cluster of a benchmark.
#pragma once

#include <memory>

#include "fabric/sim/timed/timed.h"
#include "farside/result.h"
#include "tools/bench/options.h"

namespace farside::tools {

// With an empty pool, as the plan asks for.
Result<std::unique_ptr<fabric::sim::TimedFabric>> MakeSimFabric(const BenchPlan& plan);

}  // namespace farside::tools
