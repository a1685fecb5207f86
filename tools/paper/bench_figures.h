// Figures that the benchmark's driver measures, for experiments of any engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "farside/result.h"
#include "index/index.h"
#include "tools/bench/bench.h"
#include "tools/bench/options.h"
#include "tools/bench/run.h"
#include "tools/paper/experiment.h"

namespace farside::tools::paper {

// Runs it. Wrong or missing values are an error: what a broken table costs is of no interest.
Result<BenchRun> Measure(const BenchPlan& plan, const Settings& settings);
Result<BenchRun> Measure(const BenchCommand& command, const Settings& settings, Nanos window = Nanos{0});

// A detail of a table's statistics; not a number if there is none of this name.
double Detail(const index::TableStats& stats, std::string_view name);

// What was used most: "memory 0 verbs 99.9 %"; or that the clients were, if nothing else.
std::string WhatBinds(const BenchRun& run);

struct OfRaw {
  double ours = 0;  // operations per second
  double raw = 0;
  double share() const { return raw > 0 ? ours / raw : 0; }
};
// The same on `raw` too, whose searches read as many bytes in so many trips.
Result<OfRaw> MeasureOfRaw(const BenchPlan& plan, uint64_t raw_trips, const Settings& settings);

}  // namespace farside::tools::paper
