// What the paper on Nessie computes (WRSC 2014), and what we promise of our engine `nessie`.
#pragma once

#include <cstdint>
#include <span>

#include "farside/result.h"
#include "tools/paper/experiment.h"

namespace farside::tools::paper {

std::span<const Experiment> NessieExperiments();

// Trips of a put of a new key by the paper's algorithms 1 and 2, as we count them, at a load of the table.
double PaperTripsOfPut(double load);
// The same by ours, if slots were taken independently of each other: with chains of at most so many
// migrations, and of keys that find a place.
double IndependentTripsOfPut(double load, uint64_t chain);

// ---- throughput and growth (nessie_figures.cc)
Result<Report> RunNessieYcsb(const Settings& settings);
Result<Report> RunNessieGrowth(const Settings& settings);

}  // namespace farside::tools::paper
