// The experiments of every engine that has a file tools/paper/ENGINE.cc, in no order. For experiment.cc.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tools/paper/experiment.h"

namespace farside::tools::paper {

struct EngineExperiments {
  std::string_view engine;
  std::span<const Experiment> experiments;
};
std::vector<EngineExperiments> ExperimentList();

}  // namespace farside::tools::paper
