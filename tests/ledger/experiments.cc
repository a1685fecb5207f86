#include "tests/ledger/experiments.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fabric/counters.h"
#include "index/tables.h"
#include "store/engines.h"
#include "tools/bench/bench.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/bench/run.h"
#include "tools/paper/bench_figures.h"
#include "tools/paper/experiment.h"
#include "tools/paper/shard.h"
#include "tools/paper/trips.h"
#include "workload/mix.h"

namespace farside::ledger {
namespace {

using tools::BenchCommand;
using tools::BenchPlan;
using tools::BenchRun;

constexpr uint64_t kRecords = 40'000;
constexpr uint32_t kClients = 64;
constexpr uint32_t kComputeNodes = 4;

// A workload of YCSB; a distribution of its own if one is named.
struct Run {
  std::string_view workload;
  std::string_view distribution;

  std::string label() const {
    return distribution.empty() ? std::string(workload) : fmt::format("{}, {}", workload, distribution);
  }
};
constexpr std::array kRuns = {Run{"load"}, Run{"a"}, Run{"a", "uniform"}, Run{"b"}, Run{"c"}, Run{"d"},
                              Run{"e"},    Run{"f"}};

// Of an engine whose scans look through the whole table. It has room for more, so that no bucket is full.
constexpr uint64_t kSmallRecords = 2'000;
constexpr uint64_t kSmallRoom = 5'120;

void NoProgress(std::string_view, uint64_t, uint64_t, std::string_view) {}
const tools::paper::Settings kSettings{.progress = NoProgress};

BenchCommand Simulated(const Subject& subject, const Run& run) {
  BenchCommand command;
  command.engine = subject.engine;
  command.options = subject.options;
  command.workload = run.workload;
  command.distribution = run.distribution;
  command.fabric = "sim";
  command.records = subject.records;
  command.clients = kClients;
  command.compute_nodes = kComputeNodes;
  return command;
}

Error Explain(std::string_view run, const Error& error) {
  return Error(error.code(), fmt::format("{}: {}", run, error.message()));
}

// The run, and how fast it is beside `raw`, a bare array of slots. Of a scan, it is not known what `raw`
// would have to read.
Status MeasureRun(const BenchCommand& command, std::string_view name, Figures& figures) {
  const Result<BenchPlan> plan = tools::PlanBench(command);
  if (!plan.ok()) return plan.error();
  const Result<BenchRun> run = tools::paper::Measure(*plan, kSettings);
  if (!run.ok()) return run.error();
  figures.AddRun(name, *run->run);
  if (plan->mix.scans()) return OkStatus();
  const Result<BenchPlan> raw_plan = tools::PlanRaw(*plan, tools::BucketBytes(*run->run));
  if (!raw_plan.ok()) return raw_plan.error();
  const Result<BenchRun> raw = tools::paper::Measure(*raw_plan, kSettings);
  if (!raw.ok()) return raw.error();
  figures.AddShareOfRaw(name, tools::OpsPerSecond(*run->run) / tools::OpsPerSecond(*raw->run));
  return OkStatus();
}

}  // namespace

std::string Subject::label() const {
  return options.empty() ? engine : fmt::format("{} {}", engine, index::ToText(options));
}

std::vector<Subject> Subjects() {
  std::vector<Subject> subjects;
  for (const store::EngineEntry& entry : store::Engines()) {
    const std::string name(entry.name);
    const std::shared_ptr<index::Engine> engine = *entry.make({});
    const bool small = engine->traits().scans_read_all;
    subjects.push_back({.engine = name,
                        .options = engine->OptionsFor({.records = small ? kSmallRoom : kRecords}),
                        .records = small ? kSmallRecords : kRecords,
                        .scans = !small});
  }
  subjects.push_back({"shard", {{"cache", "0"}}, kRecords, /*scans=*/false});
  subjects.push_back({"chime", {{"keys", "inline"}}, kRecords, /*scans=*/true});
  return subjects;
}

Status MeasureKinds(const Subject& subject, Figures& figures) {
  const std::string run = subject.label() + " | one client";
  const tools::paper::TripsPlan plan{
      .engine = subject.engine, .options = subject.options, .records = subject.records};
  const Result<tools::paper::TripFigures> trips = tools::paper::MeasureTrips(plan, NoProgress);
  if (!trips.ok()) return Explain(run, trips.error());
  figures.AddKind(run, "insert", trips->insert.tally);
  figures.AddKind(run, "search", trips->search.tally);
  figures.AddKind(run, "search, absent", trips->absent.tally);
  figures.AddKind(run, "search, repeated", trips->repeated_search.tally);
  figures.AddKind(run, "update", trips->update.tally);
  if (subject.scans) figures.AddKind(run, "scan of 100", trips->scan.tally);
  figures.AddKind(run, "delete", trips->erase.tally);
  return OkStatus();
}

Status MeasureWorkloads(const Subject& subject, Figures& figures) {
  const bool scans = subject.scans && store::IsOrdered(subject.engine, subject.options);
  for (const Run& run : kRuns) {
    const Result<workload::Mix> mix = workload::FindMix(run.workload);
    if (!mix.ok()) return mix.error();
    if (mix->scans() && !scans) continue;
    BenchCommand command = Simulated(subject, run);
    if (!mix->is_load) command.ops = mix->scans() ? subject.records / 4 : subject.records;
    const std::string name = fmt::format("{} | {}", subject.label(), run.label());
    if (Status measured = MeasureRun(command, name, figures); !measured.ok())
      return Explain(name, measured.error());
  }
  return OkStatus();
}

Status MeasureAlphas(Figures& figures) {
  for (const std::string_view alpha : tools::paper::kAlphas) {
    const Result<BenchRun> measured = tools::paper::MeasureAlpha(alpha, kSettings);
    if (!measured.ok()) return Explain("alpha", measured.error());
    figures.AddRate(fmt::format("shard | shard-figure18, alpha {}", alpha),
                    tools::OpsPerSecond(*measured->run));
  }
  return OkStatus();
}

}  // namespace farside::ledger
