// What the paper on SHARD reports (PVLDB 19(4), 2025), and what we promise of our engine `shard`.
#pragma once

#include <span>

#include "tools/paper/experiment.h"

namespace farside::tools::paper {

std::span<const Experiment> ShardExperiments();

}  // namespace farside::tools::paper
