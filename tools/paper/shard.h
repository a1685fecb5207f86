// What the paper on SHARD reports (PVLDB 19(4), 2025), and what we promise of our engine `shard`.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "farside/result.h"
#include "tools/bench/run.h"
#include "tools/paper/experiment.h"

namespace farside::tools::paper {

std::span<const Experiment> ShardExperiments();

// Figure 18: inserts by 64 clients into a small table, for one alpha.
inline constexpr std::array<std::string_view, 6> kAlphas = {"0.0001", "0.001", "0.01", "0.1", "1", "10"};
Result<BenchRun> MeasureAlpha(std::string_view alpha, const Settings& settings);

}  // namespace farside::tools::paper
