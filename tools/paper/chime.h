// What the paper on CHIME reports (SOSP 2024), and what we promise of our engine `chime`.
#pragma once

#include <span>

#include "tools/paper/experiment.h"

namespace farside::tools::paper {

std::span<const Experiment> ChimeExperiments();

// ---- those that compare with another tree (chime_compared.cc)
Result<Report> RunChimeSherman(const Settings& settings);
Result<Report> RunChimeFigure15(const Settings& settings);

}  // namespace farside::tools::paper
