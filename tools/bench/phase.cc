#include "tools/bench/phase.h"

#include <utility>

namespace farside::tools {

void BenchTally::Add(const BenchTally& other) {
  for (size_t action = 0; action < latency.size(); ++action) latency[action].Merge(other.latency[action]);
  counters.Add(other.counters);
  // The time from the first client's begin to the last one's end.
  began = operations == 0 ? other.began : std::min(began, other.began);
  ended = std::max(ended, other.ended);
  operations += other.operations;
  scanned += other.scanned;
  errors += other.errors;
  windows.resize(std::max(windows.size(), other.windows.size()));
  for (size_t i = 0; i < other.windows.size(); ++i) windows[i] += other.windows[i];
  for (const auto& [step, at] : other.growth) {
    const auto [known, is_new] = growth.emplace(step, at);
    if (!is_new) known->second = std::min(known->second, at);
  }
  if (first_problem.empty()) first_problem = other.first_problem;
}

uint64_t BenchPhase::Take(uint64_t& first) {
  if (options_.duration.has_value()) return kLargestPortion;
  first = taken_.fetch_add(portion_, std::memory_order_relaxed);
  return first < options_.operations ? std::min(portion_, options_.operations - first) : 0;
}

void BenchPhase::Fail(const Error& error) {
  const std::scoped_lock lock(mutex_);
  if (!error_.has_value()) error_.emplace(error);
  failed_.store(true, std::memory_order_relaxed);
}

}  // namespace farside::tools
