// The results of a benchmark: figures made of counts, and the text that people read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/histogram.h"
#include "fabric/counters.h"
#include "tools/bench/options.h"
#include "tools/bench/run.h"
#include "tools/common/terminal.h"

namespace farside::tools {

struct BenchResult {
  BenchRun run;
  // The same workload on `raw`, a bare array of slots with buckets of as many bytes. Absent with --no-raw.
  std::optional<BenchPlan> raw_plan;
  std::optional<BenchRun> raw;

  // ops/s as a fraction of those of raw.
  std::optional<double> OfRaw() const;
  // Wrong or missing values, and operations that failed, in the load and in the run.
  uint64_t Errors() const;
};

double OpsPerSecond(const BenchTally& tally);
Histogram AllLatencies(const BenchTally& tally);

// What an operation of one kind cost on average; absent if there was none.
struct KindCost {
  double index_trips = 0;
  double end_to_end_trips = 0;
};
std::optional<KindCost> CostOf(const BenchTally& tally, fabric::OpKind kind);

// How many a scan returned on average; absent if there was none.
std::optional<double> RecordsPerScan(const BenchTally& tally);

// What handlers of the nodes made durable for an operation, on average; absent if that was nothing.
struct FlushCost {
  double lines = 0;
  double drains = 0;
};
std::optional<FlushCost> FlushesOf(const BenchRun& run);

// What an operation of the workload cost on average. Maintenance stands beside.
struct OperationCost {
  double bytes_read = 0;
  double bytes_written = 0;
  double cas_failed = 0;
  double retries = 0;
  double maintenance_trips = 0;
  double maintenance_bytes = 0;
};
OperationCost CostOf(const BenchTally& tally);

// Bytes of the index that a search reads; or any operation, if there was no search. What raw is to read too.
double BucketBytes(const BenchTally& tally);

std::string BenchText(const BenchPlan& plan, const BenchResult& result, const Paint& paint);

}  // namespace farside::tools
