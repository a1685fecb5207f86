// What the paper on Nessie computes (WRSC 2014), and what we promise of our engine `nessie`.
#pragma once

#include <cstdint>
#include <span>

#include "farside/result.h"
#include "tools/paper/experiment.h"

namespace farside::tools::paper {

std::span<const Experiment> NessieExperiments();

// How to read the paper's algorithms 1 and 2: its text does not say which of their steps wait for each other.
enum class Reading : uint8_t {
  kFewest,   // nothing is looked at twice, and both items are read at once
  kClosest,  // the secondary slot is looked at again, items one by one: chosen because it agrees with table 1
};
// Trips of a put of a new key by the paper's algorithms, at a load of the table.
double PaperTripsOfPut(double load, Reading reading);
// The same by ours, if slots were taken independently of each other: with chains of at most so many
// migrations, and of keys that find a place.
double IndependentTripsOfPut(double load, uint64_t chain);

// ---- throughput and growth (nessie_figures.cc)
Result<Report> RunNessieYcsb(const Settings& settings);
Result<Report> RunNessieGrowth(const Settings& settings);

}  // namespace farside::tools::paper
