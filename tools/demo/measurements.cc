// The parts of the demo that the benchmark's driver measures, in a simulated cluster.
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "index/index.h"
#include "store/engines.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/bench/run.h"
#include "tools/common/output.h"
#include "tools/demo/parts.h"
#include "tools/paper/bench_figures.h"
#include "tools/paper/timeline.h"

namespace farside::tools::demo {
namespace {

using fabric::OpKind;

constexpr Nanos kWindow = std::chrono::milliseconds(1);
constexpr size_t kStretch = 10;  // windows
constexpr size_t kPlotRows = 6;

// A progress line that is there at once: this is what a newcomer looks at.
class Lines {
 public:
  BenchProgress progress() {
    return [this](std::string_view what, uint64_t done, uint64_t total, std::string_view unit) {
      lines_.Show(what, done, total, unit);
    };
  }

 private:
  ProgressLines lines_{Nanos{0}};
};

BenchCommand OnCluster(std::string_view engine, std::string_view workload) {
  BenchCommand command;
  command.engine = engine;
  command.workload = workload;
  command.fabric = "sim";
  command.clients = 32;
  command.compute_nodes = 4;
  return command;
}

std::string EngineRow(std::string_view name, const BenchRun& run, double raw_rate, bool keeps_records) {
  const std::optional<KindCost> search = CostOf(*run.run, OpKind::kSearch);
  const std::optional<KindCost> update = CostOf(*run.run, OpKind::kUpdate);
  const uint64_t bytes = run.memory.index_bytes + run.memory.block_bytes;
  const std::string space =
      keeps_records ? fmt::format("{:.0f} B", static_cast<double>(bytes) / static_cast<double>(run.records))
                    : "-";
  const double rate = OpsPerSecond(*run.run);
  return fmt::format("  {:<12}{:>12.2f}{:>14.2f}{:>16}{:>12.0f} %{:>14}\n", name, search->end_to_end_trips,
                     update->end_to_end_trips, Grouped(static_cast<uint64_t>(rate)), 100 * rate / raw_rate,
                     space);
}

// The rows of the engines, and that of raw below them. The progress line is wiped when this returns, so
// nothing that is printed afterwards stands on it.
Result<std::string> EngineRows() {
  constexpr index::ExpectedRecords kExpected{.records = 20'000, .key_bytes = 8, .value_bytes = 8};
  Lines lines;
  const paper::Settings settings{.progress = lines.progress()};
  double raw_rate = 0;
  std::string rows;
  std::string raw_row;
  for (const store::EngineEntry& engine : store::Engines()) {
    BenchCommand command = OnCluster(engine.name, "b");
    command.options = (*engine.make({}))->OptionsFor(kExpected);
    command.records = kExpected.records;
    command.ops = 100'000;
    const Result<BenchPlan> plan = PlanBench(command);
    if (!plan.ok()) return plan.error();
    const Result<BenchRun> run = paper::Measure(*plan, settings);
    if (!run.ok()) return run.error();
    if (raw_rate == 0) {
      const Result<BenchPlan> raw_plan = PlanRaw(*plan, BucketBytes(*run->run));
      if (!raw_plan.ok()) return raw_plan.error();
      const Result<BenchRun> raw = paper::Measure(*raw_plan, settings);
      if (!raw.ok()) return raw.error();
      raw_rate = OpsPerSecond(*raw->run);
      raw_row = EngineRow(raw_plan->engine_name, *raw, raw_rate, false);
    }
    rows += EngineRow(engine.name, *run, raw_rate, true);
  }
  return rows + raw_row;
}

}  // namespace

Status ShowGrowth(const Paint& paint, int number) {
  Print(Heading(paint, number, "It grows while it is used"));
  Print(
      "Eight clients of a simulated cluster insert records into a small table. Whenever it is nearly full, "
      "it\n"
      "doubles: a resize is announced, and a client that writes to a bucket splits it first. No client\n"
      "is stopped.\n\n");
  BenchCommand command = OnCluster("shard", "load");
  command.clients = 8;
  command.compute_nodes = 2;
  command.records = 150'000;
  command.options = {{"buckets", "16"}};
  Result<BenchPlan> plan = PlanBench(command);
  if (!plan.ok()) return plan.error();
  plan->window = kWindow;
  Result<BenchRun> run = Error(ErrorCode::kUnavailable, "not run");
  {
    Lines lines;
    run = paper::Measure(*plan, {.progress = lines.progress()});
  }
  if (!run.ok()) return run.error();
  Print(paper::PlotText(paper::PlotOf(*run->run, kWindow, "inserts"), StdoutDrawsUnicode(), paper::kPlotWidth,
                        kPlotRows));
  const std::optional<KindCost> insert = CostOf(*run->run, OpKind::kInsert);
  const paper::Evenness evenness = paper::MeasureEvenness(run->run->windows, kWindow, kStretch);
  Print(
      fmt::format("\n  {} records; doubled {:.0f} times; an insert took {:.2f} trips on average.\n"
                  "  The slowest 10 ms ran at {:.0f} % of the steady rate of {} inserts a second.\n",
                  Grouped(run->records), paper::Detail(run->stats, "resizes"), insert->end_to_end_trips,
                  100 * evenness.share(), Grouped(static_cast<uint64_t>(evenness.steady))));
  return OkStatus();
}

Status ShowEngines(const Paint& paint, int number) {
  Print(Heading(paint, number, "The engines side by side"));
  Print(
      "YCSB workload b (95 % reads, 5 % updates, some keys much more often than others) on 20,000 records, "
      "by\n"
      "32 clients on four machines, simulated. Each engine has the options that suit such records: "
      "reference, which\n"
      "cannot grow, got its 4,000 buckets beforehand.\n\n"
      "raw is no table but a bare array of slots, to compare with: a read fetches a bucket as large as "
      "shard's, and\n"
      "then a block, in two trips. It is no upper bound: engines that take fewer trips or bytes pass it. "
      "Here chime\n"
      "does, which has keys and values in its leaves and reads them in one trip.\n\n");
  const Result<std::string> rows = EngineRows();
  if (!rows.ok()) return rows.error();
  Print(paint.Dim(fmt::format("  {:<12}{:>12}{:>14}{:>16}{:>14}{:>14}", "engine", "trips/read",
                              "trips/update", "ops/s", "of raw", "far memory")) +
        "\n");
  Print(*rows);
  Print("\n  trips are end to end; far memory is of a record, its key and value of 8 bytes each included.\n");
  return OkStatus();
}

}  // namespace farside::tools::demo
