// `farside bench`: a YCSB workload on one engine over one fabric, and what it costs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "index/index.h"
#include "tools/common/exit_code.h"

namespace farside::tools {

// As the words of the command line say; options.h makes sense of it.
struct BenchCommand {
  std::string engine;
  index::OptionMap options;
  std::string workload = "c";
  std::string fabric;        // empty: embedded, unless there is a URL
  std::string url;           // of a pool that is there; empty: one is made
  std::string distribution;  // empty: that of the workload
  uint32_t nodes = 1;
  uint32_t compute_nodes = 1;
  uint64_t records = 100'000;
  std::optional<uint64_t> ops;
  std::optional<double> seconds;
  std::optional<uint64_t> warmup;
  uint32_t clients = 1;
  uint32_t depth = 1;
  uint64_t key_size = 8;
  uint64_t value_size = 8;
  uint64_t seed = 1;
  std::string size;  // of the region of each node; empty: as much as it takes
  bool no_raw = false;
  bool json = false;
};

ExitCode Bench(const BenchCommand& command);

}  // namespace farside::tools
