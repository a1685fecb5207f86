// The workloads of the Yahoo Cloud Serving Benchmark (Cooper et al., SoCC 2010, table 2), by their letters:
//
//   load   inserts every record once
//   a      50 % reads, 50 % updates                  zipfian
//   b      95 % reads,  5 % updates                  zipfian
//   c     100 % reads                                zipfian
//   d      95 % reads of new records, 5 % inserts    latest
//   e      95 % scans of ranges, 5 % inserts         zipfian
//   f      50 % reads, 50 % read-modify-writes       zipfian
//
// Workload e needs an engine that keeps its keys in order. A scan begins at the key of a record, and is of 1
// to 100 records, all lengths alike. As keys look random (records.h), what is inserted falls anywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "farside/result.h"

namespace farside::workload {

enum class Action : uint8_t { kRead, kUpdate, kInsert, kReadModifyWrite, kScan };
inline constexpr size_t kActions = 5;
// "read", "update", "insert", "read-modify-write", "scan".
std::string_view Name(Action action);

enum class Distribution : uint8_t { kUniform, kZipfian, kLatest };
std::string_view Name(Distribution distribution);
Result<Distribution> ParseDistribution(std::string_view text);

struct Mix {
  std::string_view name;
  std::array<uint32_t, kActions> percent{};  // by Action; they add up to 100
  Distribution distribution = Distribution::kZipfian;
  bool is_load = false;  // every record is inserted once, in order

  bool inserts() const { return percent[static_cast<size_t>(Action::kInsert)] > 0; }
  bool scans() const { return percent[static_cast<size_t>(Action::kScan)] > 0; }
};

inline constexpr uint32_t kLongestScan = 100;  // in records

// kInvalidArgument, with the names that there are, if there is no such workload.
Result<Mix> FindMix(std::string_view name);

}  // namespace farside::workload
