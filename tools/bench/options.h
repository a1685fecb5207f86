// What a benchmark is to do, with every question answered: made of the words of the command line, or of
// another plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "farside/result.h"
#include "index/index.h"
#include "tools/bench/bench.h"
#include "workload/mix.h"

namespace farside::tools {

enum class BenchFabric : uint8_t {
  kEmbedded,
  kShm,
  kTcp,
  kUrl,  // memory nodes that are there already
  kSim,
};
// "embedded"
std::string_view Name(BenchFabric fabric);

struct BenchPlan {
  std::string engine_name;
  index::OptionMap engine_options;
  std::shared_ptr<index::Engine> engine;
  BenchFabric fabric = BenchFabric::kEmbedded;
  std::string url;  // of kUrl
  std::string table = "bench";
  workload::Mix mix;
  workload::Distribution distribution = workload::Distribution::kZipfian;
  uint32_t nodes = 1;
  uint32_t compute_nodes = 1;
  uint64_t records = 1;
  uint64_t operations = 1;        // of the measured run, over all clients
  std::optional<Nanos> duration;  // instead of operations
  uint64_t warmup = 0;            // operations before it
  uint32_t clients = 1;
  uint32_t depth = 1;
  uint64_t key_size = 8;
  uint64_t value_size = 8;
  uint64_t seed = 1;
  Nanos window{0};                      // of BenchTally::windows; 0: none
  bool puts = false;                    // records are put, not inserted: the table need not look for them
  uint64_t region_bytes = 0;            // of each node
  uint64_t operations_per_sync = 1000;  // fewer with large values: what was retired must not fill the memory

  // What is put in can be read again, so whether it is can be checked.
  bool verifies() const { return engine->traits().keeps_records; }
};

// "tcp": of a URL, what it begins with.
std::string FabricText(const BenchPlan& plan);

// kInvalidArgument, in one line, if the words make no sense.
Result<BenchPlan> PlanBench(const BenchCommand& command);

// The same benchmark on the engine `raw`, whose searches read `bucket_bytes` of index, rounded to lines, in
// so many trips.
Result<BenchPlan> PlanRaw(const BenchPlan& plan, double bucket_bytes, uint64_t trips = 2);

}  // namespace farside::tools
