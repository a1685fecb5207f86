// An experiment of a paper, as we repeat it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "farside/result.h"
#include "tools/bench/run.h"
#include "tools/paper/plot.h"
#include "tools/paper/row.h"

namespace farside::tools::paper {

struct Settings {
  uint64_t percent = 100;  // of the usual size
  bool full = false;       // the size that the claim speaks of, however long it takes
  BenchProgress progress;

  // A size that is at least `least`.
  uint64_t Scaled(uint64_t usual, uint64_t at_full, uint64_t least) const;
};

struct Report {
  std::string set_up;  // what was measured, in a line or two
  std::vector<Row> rows;
  std::vector<Plot> plots;
  std::string note;  // what the rows do not say; may be empty
};

struct Experiment {
  std::string_view name;   // "shard-table3"
  std::string_view title;  // "round trips per operation (SHARD, table 3)"
  Result<Report> (*run)(const Settings& settings);
};

// All of them, engine by engine, in the order of store::AllEngines. Those of an engine stand in
// tools/paper/ENGINE.cc, which CMake finds and which defines `std::span<const Experiment>
// EngineExperiments()`, as in ShardExperiments.
std::span<const Experiment> Experiments();
// Null if there is none.
const Experiment* FindExperiment(std::string_view name);

}  // namespace farside::tools::paper
