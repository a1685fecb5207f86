// Throughput and growth of the nessie table.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fabric/op.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/common/output.h"
#include "tools/paper/bench_figures.h"
#include "tools/paper/lone_table.h"
#include "tools/paper/nessie.h"
#include "tools/paper/timeline.h"
#include "workload/records.h"

namespace farside::tools::paper {
namespace {

constexpr std::optional<double> kNotGiven;
constexpr uint32_t kClients = 64;
constexpr uint32_t kComputeNodes = 4;

BenchCommand OnCluster(std::string_view engine, std::string_view workload, uint64_t records) {
  BenchCommand command;
  command.engine = engine;
  command.workload = workload;
  command.records = records;
  command.fabric = "sim";
  command.clients = kClients;
  command.compute_nodes = kComputeNodes;
  return command;
}

// ---- YCSB ------------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 4> kWorkloads = {"load", "a", "b", "c"};
constexpr std::array<std::string_view, 2> kEngines = {"nessie", "shard"};

double TripsOf(const BenchRun& run) {
  uint64_t operations = 0;
  uint64_t trips = 0;
  for (const fabric::OpKind kind :
       {fabric::OpKind::kSearch, fabric::OpKind::kInsert, fabric::OpKind::kUpdate}) {
    const fabric::OpTally& tally = run.run->counters.at(kind, fabric::OpOutcome::kDone);
    operations += tally.operations;
    trips += tally.end_to_end_trips;
  }
  return static_cast<double>(trips) / static_cast<double>(std::max<uint64_t>(operations, 1));
}

Status AddWorkload(std::string_view workload, const Settings& settings, Report& report) {
  std::array<double, kEngines.size()> rates{};
  for (size_t i = 0; i < kEngines.size(); ++i) {
    BenchCommand command = OnCluster(kEngines[i], workload, settings.Scaled(60'000, 1'000'000, 2000));
    if (workload != "load") command.ops = settings.Scaled(60'000, 1'000'000, 2000);
    const Result<BenchRun> run = Measure(command, settings);
    if (!run.ok()) return run.error();
    rates[i] = OpsPerSecond(*run->run);
    const std::string name = fmt::format("{}, {}", workload, kEngines[i]);
    report.rows.push_back({name, kNotGiven, rates[i], Rule::Reported(), Unit::kOpsPerSecond});
    report.rows.push_back({name + ", trips", kNotGiven, TripsOf(*run), Rule::Reported(), Unit::kTrips});
    report.note += fmt::format("\n  {:<16}{}", name, WhatBinds(*run));
  }
  report.rows.push_back({fmt::format("{}, nessie of shard", workload), kNotGiven, rates[0] / rates[1],
                         Rule::Reported(), Unit::kTimes});
  return OkStatus();
}

// ---- growth ----------------------------------------------------------------------------------------------

constexpr std::array<uint64_t, 3> kSweeps = {0, 3, 8};
constexpr uint64_t kDoublings = 5;
constexpr Nanos kWindow = std::chrono::milliseconds(1);
constexpr size_t kWindowsOfClaim = 10;
constexpr uint64_t kOperationsPerLook = 32;

// One client that puts new keys into a table which grows.
struct Growing {
  uint64_t puts = 0;
  uint64_t trips = 0;
  uint64_t worst_trips = 0;
  uint64_t growths = 0;     // that have begun
  double most_unsplit = 0;  // share of slots, of those when a growth begins
};

class Grower {
 public:
  Grower(LoneTable& table, Growing& growing) : table_(table), growing_(growing) {}

  Status PutNew(uint64_t record) {
    const fabric::OpTally& tally =
        table_.client().counters().at(fabric::OpKind::kInsert, fabric::OpOutcome::kDone);
    const uint64_t before = tally.end_to_end_trips;
    workload::FillKey(record, key_);
    workload::FillValue(key_, 0, value_);
    const Result<Done> put = table_.Run(Put());
    if (!put.ok()) return put.error();
    const uint64_t trips = tally.end_to_end_trips - before;
    ++growing_.puts;
    growing_.trips += trips;
    growing_.worst_trips = std::max(growing_.worst_trips, trips);
    if (record % kOperationsPerLook == 0) {
      if (Status maintained = table_.Maintain(); !maintained.ok()) return maintained;
    }
    return LookForGrowth();
  }

 private:
  Task<Done> Put() {
    fabric::Op op(table_.client(), fabric::OpKind::kInsert);
    co_await table_.index().Put(op, key_, value_);
    co_return Done{};
  }
  // A growth that has begun: what is unsplit now was left by the one before.
  Status LookForGrowth() {
    const uint64_t growth = (table_.index().growth() + 1) / 2;
    if (growth == growing_.growths) return OkStatus();
    growing_.growths = growth;
    const Result<index::TableStats> stats = table_.Stats();
    if (!stats.ok()) return stats.error();
    // The first one begins in a table without unsplit slots, and one that is in force already has new ones.
    if (table_.index().growth() % 2 == 1)
      growing_.most_unsplit = std::max(growing_.most_unsplit, Detail(*stats, "share of unsplit slots"));
    return OkStatus();
  }

  LoneTable& table_;
  Growing& growing_;
  std::string key_ = std::string(8, '\0');
  std::string value_ = std::string(8, '\0');
};

Result<Growing> GrowAlone(uint64_t slots, uint64_t sweep, uint64_t records, const Settings& settings) {
  const index::OptionMap options = {{"slots", std::to_string(slots)}, {"sweep", std::to_string(sweep)}};
  const Result<std::unique_ptr<LoneTable>> table = LoneTable::Make("nessie", options, records);
  if (!table.ok()) return table.error();
  Growing growing;
  Grower grower(**table, growing);
  for (uint64_t record = 0; record < records; ++record) {
    if (record % 1024 == 0) settings.progress("nessie puts", record, records, "records");
    if (Status put = grower.PutNew(record); !put.ok()) return put.error();
  }
  return growing;
}

Status AddGrowth(uint64_t sweep, const Settings& settings, Report& report) {
  const uint64_t slots = settings.Scaled(4096, 32768, 256);
  const uint64_t first = std::bit_ceil(slots);
  // Three in four of the records that the last doubling has room for.
  const uint64_t records = (first << kDoublings) * 3 / 10;
  const std::string name = fmt::format("sweep {}, ", sweep);
  const auto add = [&](std::string_view what, double ours, Unit unit) {
    report.rows.push_back({name + std::string(what), kNotGiven, ours, Rule::Reported(), unit});
  };
  const Result<Growing> alone = GrowAlone(first, sweep, records, settings);
  if (!alone.ok()) return alone.error();
  add("one client, trips of a put", static_cast<double>(alone->trips) / static_cast<double>(alone->puts),
      Unit::kTrips);
  add("one client, trips of the worst put", static_cast<double>(alone->worst_trips), Unit::kTrips);
  add("one client, doublings", static_cast<double>(alone->growths), Unit::kNumber);
  add("one client, unsplit slots when it grows again, at most", alone->most_unsplit, Unit::kShare);

  BenchCommand command = OnCluster("nessie", "load", records);
  command.options = {{"slots", std::to_string(first)}, {"sweep", std::to_string(sweep)}};
  Result<BenchPlan> plan = PlanBench(command);
  if (!plan.ok()) return plan.error();
  plan->window = kWindow;
  plan->puts = true;
  const Result<BenchRun> run = Measure(*plan, settings);
  if (!run.ok()) return run.error();
  const Evenness evenness = MeasureEvenness(run->run->windows, kWindow, kWindowsOfClaim);
  add("64 clients, slowest 10 ms, of the steady rate", evenness.share(), Unit::kShare);
  add("64 clients, steady rate", evenness.steady, Unit::kOpsPerSecond);
  add("64 clients, over all", OpsPerSecond(*run->run), Unit::kOpsPerSecond);
  add("64 clients, trips of a put", TripsOf(*run), Unit::kTrips);
  add("64 clients, unsplit slots at the end", Detail(run->stats, "share of unsplit slots"), Unit::kShare);
  add("64 clients, doublings", Detail(run->stats, "growths"), Unit::kNumber);
  Plot plot = PlotOf(*run->run, kWindow,
                     fmt::format("sweep {}: {} puts by {} clients, from {} slots", sweep, Grouped(records),
                                 kClients, Grouped(first)));
  plot.legend = ". a growth is announced   ^ in force: slots are split by puts, and swept";
  report.plots.push_back(std::move(plot));
  report.note += fmt::format("\n  {:<10}{}", fmt::format("sweep {}", sweep), WhatBinds(*run));
  return OkStatus();
}

}  // namespace

Result<Report> RunNessieYcsb(const Settings& settings) {
  Report report;
  report.set_up = fmt::format(
      "{} clients on {} machines, one memory node, {} records with keys and values of 8 bytes;\n"
      "simulated, times are virtual. Both engines with their usual options.",
      kClients, kComputeNodes, Grouped(settings.Scaled(60'000, 1'000'000, 2000)));
  report.note = "The paper has no measurements. What binds:";
  for (const std::string_view workload : kWorkloads) {
    if (Status added = AddWorkload(workload, settings, report); !added.ok()) return added.error();
  }
  return report;
}

Result<Report> RunNessieGrowth(const Settings& settings) {
  Report report;
  report.set_up = fmt::format(
      "Puts of new keys through {} doublings: by one client, counted, and by {} on a simulated cluster\n"
      "with one memory node, where times are virtual. Sweep: slots that a put splits besides its own,\n"
      "while there are unsplit ones. The steady rate is what one in ten stretches of 10 ms exceeds; the\n"
      "slowest is the slowest of all, wherever it begins.",
      kDoublings, kClients);
  report.note =
      "The paper's table grows by a server that takes every client's memory away meanwhile; it gives no\n"
      "figures. What binds:";
  for (const uint64_t sweep : kSweeps) {
    if (Status added = AddGrowth(sweep, settings, report); !added.ok()) return added.error();
  }
  return report;
}

}  // namespace farside::tools::paper
