// Where a benchmark runs: an empty pool on a fabric, and what makes its clients go on.
//
//   embedded   memory of this process; every client is a thread, and time is real
//   shm, tcp   the same, but the memory belongs to memory nodes that are started for the benchmark, or are there (--url)
//   sim        a simulated cluster; all clients run in this thread, and time is virtual
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/client.h"
#include "farside/result.h"
#include "pool/region/superblock.h"
#include "tools/bench/client.h"
#include "tools/bench/options.h"

namespace farside::tools {

// A figure of the model of a simulated cluster.
struct BenchFigure {
  std::string name;
  std::string unit;
  uint64_t value = 0;
};

// How busy a part of the cluster was: 1 is what binds.
struct BenchUse {
  std::string name;
  double share = 0;
};

class BenchWorld {
 public:
  using Progress = std::function<void(uint64_t operations)>;

  virtual ~BenchWorld() = default;

  virtual Result<std::unique_ptr<fabric::Client>> Connect(uint32_t compute_node) = 0;
  // Runs a phase on all clients until it is over. A failure of the phase itself stands in the phase.
  virtual Status Run(std::span<const std::unique_ptr<BenchClient>> clients, BenchPhase& phase, uint32_t depth,
                     const Progress& progress) = 0;
  // Whether it stays when the benchmark is over, so that the table has to be dropped.
  virtual bool tidies_up() const { return false; }
  // Of a simulated cluster; else empty.
  virtual std::vector<BenchFigure> Model() const { return {}; }
  // During the last phase, the busiest first.
  virtual std::vector<BenchUse> Uses() const { return {}; }
};

// As the plan asks for.
Result<std::unique_ptr<BenchWorld>> MakeBenchWorld(const BenchPlan& plan);

// Slots for the clients of the plan, and some to spare.
pool::FormatOptions FormatFor(const BenchPlan& plan);

Result<std::unique_ptr<BenchWorld>> MakeThreadsWorld(const BenchPlan& plan);
Result<std::unique_ptr<BenchWorld>> MakeSimWorld(const BenchPlan& plan);

}  // namespace farside::tools
