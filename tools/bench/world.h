// Where a benchmark runs: an empty pool on a fabric, and what makes its clients go on.
//
//   embedded   memory of this process; every client is a thread with a session of its own, and time is real
//   shm, tcp   the same with memory nodes in other processes: started for the benchmark, or running (--url)
//   sim        a simulated cluster; all clients run in this thread, and time is virtual
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/service.h"
#include "farside/result.h"
#include "pool/region/superblock.h"
#include "tools/bench/client.h"
#include "tools/bench/options.h"
#include "tools/bench/table.h"

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

  // The table of the next client. The first one makes it: kAlreadyExists if the pool has a table of this
  // name.
  virtual Result<std::unique_ptr<BenchTable>> Join() = 0;
  // Runs a phase on all clients until it is over. A failure of the phase itself stands in the phase.
  virtual Status Run(std::span<const std::unique_ptr<BenchClient>> clients, BenchPhase& phase, uint32_t depth,
                     const Progress& progress) = 0;
  // Leaves a pool that stays when the benchmark is over as it was: the clients leave, and the table is
  // dropped.
  virtual Status TidyUp(std::span<const std::unique_ptr<BenchClient>> /*clients*/) { return OkStatus(); }
  // To be called before the clients end: if the pool ends with the benchmark, they need not leave it in good
  // order.
  virtual void Abandon() {}
  // Of a simulated cluster; else empty.
  virtual std::vector<BenchFigure> Model() const { return {}; }
  // What handlers of the nodes have made durable so far, as far as this process knows.
  virtual fabric::FlushCounts Flushed() const { return {}; }
  // During the last phase, the busiest first.
  virtual std::vector<BenchUse> Uses() const { return {}; }
};

// What the plan asks for. The plan must outlive it.
Result<std::unique_ptr<BenchWorld>> MakeBenchWorld(const BenchPlan& plan);

// Slots for the clients of the plan, and some to spare.
pool::FormatOptions FormatFor(const BenchPlan& plan);

// That the table of the plan must not be dropped, since the benchmark has not made it.
Error TableExists(const BenchPlan& plan);

Result<std::unique_ptr<BenchWorld>> MakeThreadsWorld(const BenchPlan& plan);
Result<std::unique_ptr<BenchWorld>> MakeSimWorld(const BenchPlan& plan);

}  // namespace farside::tools
