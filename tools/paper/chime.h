// What the paper on CHIME reports (SOSP 2024), and what we promise of our engine `chime`.
#pragma once

#include <cstdint>
#include <span>

#include "tools/paper/experiment.h"

namespace farside::tools::paper {

std::span<const Experiment> ChimeExperiments();

// Hotspots in proportion to the paper's 30 MB for 60 million records.
inline constexpr uint64_t kRecordsPerHotspotByte = 2;

// ---- experiments that compare with another tree (chime_compared.cc)
Result<Report> RunChimeSherman(const Settings& settings);
Result<Report> RunChimeFigure15(const Settings& settings);

}  // namespace farside::tools::paper
