#include "tools/paper/bench_figures.h"

#include <limits>

#include <fmt/format.h>

#include "tools/bench/report.h"

namespace farside::tools::paper {
namespace {

constexpr double kBusy = 0.9;  // of the time: what is busier binds

Status Checked(const BenchPlan& plan, const BenchTally* tally) {
  if (tally == nullptr || tally->errors == 0) return OkStatus();
  return Error(ErrorCode::kCorrupt,
               fmt::format("{} of {} operations on {} went wrong; the first: {}", tally->errors,
                           tally->operations, plan.engine_name, tally->first_problem));
}

}  // namespace

Result<BenchRun> Measure(const BenchPlan& plan, const Settings& settings) {
  Result<BenchRun> run = RunBench(plan, settings.progress);
  if (!run.ok() || !plan.verifies()) return run;
  for (const BenchTally* tally : {run->load.get(), run->run.get()}) {
    if (Status checked = Checked(plan, tally); !checked.ok()) return checked.error();
  }
  return run;
}

Result<BenchRun> Measure(const BenchCommand& command, const Settings& settings, Nanos window) {
  Result<BenchPlan> plan = PlanBench(command);
  if (!plan.ok()) return plan.error();
  plan->window = window;
  return Measure(*plan, settings);
}

double Detail(const index::TableStats& stats, std::string_view name) {
  for (const auto& [known, figure] : stats.details) {
    if (known == name) return figure;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::string WhatBinds(const BenchRun& run) {
  if (run.uses.empty()) return "nothing";
  const BenchUse& most = run.uses.front();
  return fmt::format("{} {:.1f} %{}", most.name, 100 * most.share,
                     most.share >= kBusy ? "" : ": the clients bind, by latency");
}

Result<OfRaw> MeasureOfRaw(const BenchPlan& plan, uint64_t raw_trips, const Settings& settings) {
  const Result<BenchRun> run = Measure(plan, settings);
  if (!run.ok()) return run.error();
  const Result<BenchPlan> raw_plan = PlanRaw(plan, BucketBytes(*run->run), raw_trips);
  if (!raw_plan.ok()) return raw_plan.error();
  const Result<BenchRun> raw = Measure(*raw_plan, settings);
  if (!raw.ok()) return raw.error();
  return OfRaw{.ours = OpsPerSecond(*run->run), .raw = OpsPerSecond(*raw->run)};
}

}  // namespace farside::tools::paper
