// What the paper on continuity hashing measures, and what we promise of our engine `continuity`.
#pragma once

#include <span>

#include "tools/paper/experiment.h"

namespace farside::tools::paper {

std::span<const Experiment> ContinuityExperiments();

}  // namespace farside::tools::paper
