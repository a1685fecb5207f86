// What the paper on SepHash reports (PVLDB 17(5), 2024), and what we promise of our engine `sephash`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "farside/result.h"
#include "tools/bench/bench.h"
#include "tools/bench/run.h"
#include "tools/paper/experiment.h"

namespace farside::tools::paper {

std::span<const Experiment> SephashExperiments();

inline constexpr uint32_t kSephashClients = 128;  // the most that the paper has

BenchCommand SephashOf(std::string_view workload, uint64_t records);
// On the simulated cluster of the paper: keys of 16 and values of 32 bytes, one memory node, 16 clients on a
// machine.
BenchCommand SephashOnCluster(std::string_view workload, uint64_t records, uint32_t clients);
// Records are put: like the paper's inserts, these do not look for the key.
Result<BenchRun> MeasurePuts(const BenchCommand& command, const Settings& settings, Nanos window = Nanos{0});

// ---- latency and throughput (sephash_figures.cc)
Result<Report> RunSephashFigure13(const Settings& settings);
Result<Report> RunSephashFigure16(const Settings& settings);
Result<Report> RunSephashFigure19(const Settings& settings);
Result<Report> RunSephashFigure20(const Settings& settings);
Result<Report> RunSephashFigure21(const Settings& settings);
Result<Report> RunSephashFigure22(const Settings& settings);

}  // namespace farside::tools::paper
