// Latency and throughput of the sephash table on the simulated cluster of the paper.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "index/sephash/layout.h"
#include "tools/bench/report.h"
#include "tools/common/output.h"
#include "tools/paper/bench_figures.h"
#include "tools/paper/sephash.h"

namespace farside::tools::paper {
namespace {

constexpr std::optional<double> kNotGiven;
constexpr std::array<uint32_t, 8> kClients = {1, 2, 4, 8, 16, 32, 64, 128};
// In a table of one segment, 128 clients append to one slot. The paper's tables have thousands of segments
// for most of the time.
constexpr uint64_t kFirstSegments = 256;
// Every client keeps chunks of its own: for blocks, for heads of MainSegments, and for their pages.
constexpr std::string_view kRoom = "8GiB";

uint64_t RecordsOf(const Settings& settings) { return settings.Scaled(100'000, 3'000'000, 4000); }
uint64_t SearchesOf(const Settings& settings) { return settings.Scaled(100'000, 3'000'000, 4000); }

BenchCommand Inserts(const Settings& settings, uint32_t clients) {
  BenchCommand command = SephashOnCluster("load", RecordsOf(settings), clients);
  command.options["segments"] = std::to_string(kFirstSegments);
  command.size = kRoom;
  return command;
}

// Clients remember all FPTables when the measurement begins, or nearly.
BenchCommand Searches(const Settings& settings, uint32_t clients) {
  BenchCommand command = SephashOnCluster("c", RecordsOf(settings), clients);
  command.options["segments"] = std::to_string(kFirstSegments);
  command.size = kRoom;
  command.ops = SearchesOf(settings);
  command.warmup = std::min<uint64_t>(3 * kFirstSegments * clients, SearchesOf(settings));
  return command;
}

double Micros(const Histogram& latency, double quantile) {
  return static_cast<double>(latency.ValueAtQuantile(quantile)) / 1e3;
}

// ---- figures 13 and 16: latency --------------------------------------------------------------------------

// p50 and p99 over the numbers of clients.
class Latencies {
 public:
  explicit Latencies(std::string what) : what_(std::move(what)) {
    plots_[0].title = fmt::format("p50 of {} by clients", what_);
    plots_[1].title = fmt::format("p99 of {} by clients", what_);
  }

  void Add(uint32_t clients, const BenchRun& run, std::optional<double> p50_of_paper, Report& report) {
    const Histogram latency = AllLatencies(*run.run);
    const std::string name = fmt::format("{}, {} client{}", what_, clients, clients == 1 ? "" : "s");
    const std::array figures = {Micros(latency, 0.5), Micros(latency, 0.99)};
    report.rows.push_back({name + ", p50", p50_of_paper, figures[0], Rule::Reported(), Unit::kMicros});
    report.rows.push_back({name + ", p99", kNotGiven, figures[1], Rule::Reported(), Unit::kMicros});
    report.rows.push_back(
        {name + ", throughput", kNotGiven, OpsPerSecond(*run.run), Rule::Reported(), Unit::kOpsPerSecond});
    for (size_t i = 0; i < plots_.size(); ++i) {
      plots_[i].columns.insert(plots_[i].columns.end(), kPlotWidth / kClients.size(), figures[i]);
      plots_[i].y_unit = "us";
      plots_[i].x_begin = std::to_string(kClients.front());
      plots_[i].x_end = std::to_string(kClients.back());
    }
  }

  void Plot(Report& report) {
    for (paper::Plot& plot : plots_) report.plots.push_back(std::move(plot));
  }

 private:
  const std::string what_;
  std::array<paper::Plot, 2> plots_;
};

constexpr double kInsertOfPaper = 4.3;  // us, p50 of one client

}  // namespace

Result<Report> RunSephashFigure13(const Settings& settings) {
  Report report;
  Latencies puts("put");
  std::string binds;
  for (const uint32_t clients : kClients) {
    const Result<BenchRun> run = MeasurePuts(Inserts(settings, clients), settings);
    if (!run.ok()) return run.error();
    puts.Add(clients, *run, clients == 1 ? std::optional(kInsertOfPaper) : kNotGiven, report);
    binds = WhatBinds(*run);
  }
  puts.Plot(report);
  Latencies inserts("insert");
  for (const uint32_t clients : {kClients.front(), kClients.back()}) {
    const Result<BenchRun> run = Measure(Inserts(settings, clients), settings);
    if (!run.ok()) return run.error();
    inserts.Add(clients, *run, kNotGiven, report);
  }
  // How much it depends on the segments that clients share.
  constexpr uint64_t kFewSegments = 64;
  BenchCommand crowded = Inserts(settings, kClients.back());
  crowded.options["segments"] = std::to_string(kFewSegments);
  const Result<BenchRun> few = MeasurePuts(crowded, settings);
  if (!few.ok()) return few.error();
  Latencies puts_of_few(fmt::format("put from {} segments", kFewSegments));
  puts_of_few.Add(kClients.back(), *few, kNotGiven, report);
  report.set_up = fmt::format(
      "{} records into a table that begins with {} segments, merges and splits included; keys of 16 and\n"
      "values of 32 bytes; 16 clients on a machine; simulated. put: like the paper's insert, does not look\n"
      "for the key. insert: only if the key is absent.",
      Grouped(RecordsOf(settings)), kFirstSegments);
  report.note = fmt::format("What binds {} clients that put: {}.", kClients.back(), binds);
  return report;
}

Result<Report> RunSephashFigure16(const Settings& settings) {
  Report report;
  Latencies searches("search");
  for (const uint32_t clients : kClients) {
    const Result<BenchRun> run = MeasurePuts(Searches(settings, clients), settings);
    if (!run.ok()) return run.error();
    searches.Add(clients, *run, kNotGiven, report);
    if (clients == kClients.back()) {
      const std::optional<KindCost> cost = CostOf(*run->run, fabric::OpKind::kSearch);
      report.rows.push_back({fmt::format("{} clients, trips of a search", clients), 2.07,
                             cost.has_value() ? cost->end_to_end_trips : 0, Rule::Reported(), Unit::kTrips});
      report.note = fmt::format(
          "The paper's 2.07 are READs of the index, of the median search. What binds {} clients: {}.",
          clients, WhatBinds(*run));
    }
  }
  searches.Plot(report);
  report.set_up = fmt::format(
      "{} searches of {} records, drawn uniformly, by clients that remember most FPTables; keys of 16 and\n"
      "values of 32 bytes; simulated.",
      Grouped(SearchesOf(settings)), Grouped(RecordsOf(settings)));
  return report;
}

// ---- figure 19: techniques -------------------------------------------------------------------------------

namespace {

struct Technique {
  std::string name;
  index::OptionMap options;
  std::optional<double> paper;  // times the throughput of the first
};

Status AddTechniques(std::span<const Technique> techniques, const BenchCommand& command, Report& report,
                     const Settings& settings) {
  double base = 0;
  for (const Technique& technique : techniques) {
    BenchCommand with = command;
    for (const auto& [option, value] : technique.options) with.options[option] = value;
    const Result<BenchRun> run = MeasurePuts(with, settings);
    if (!run.ok()) return run.error();
    const double rate = OpsPerSecond(*run->run);
    const bool is_base = base == 0;
    if (is_base) base = rate;
    report.rows.push_back({technique.name, kNotGiven, rate, Rule::Reported(), Unit::kOpsPerSecond});
    if (!is_base) {
      report.rows.push_back({fmt::format("{}, times the base", technique.name), technique.paper, rate / base,
                             Rule::Reported(), Unit::kTimes});
    }
    report.note += fmt::format("\n  {:<46}{}", technique.name, WhatBinds(*run));
  }
  return OkStatus();
}

constexpr uint32_t kFewClients = 16;

// 1.6 and 3.3 times RACE are what the paper says of the first and of the last, of 128 clients.
std::vector<Technique> WritesBy(uint32_t clients) {
  const bool as_paper = clients == kSephashClients;
  const std::string name = fmt::format("inserts, {} clients", clients);
  return {
      {name + ": base", {{"split_by", "blocks"}, {"zero_wait", "no"}}, kNotGiven},
      {name + ": + depth bits in entries", {{"zero_wait", "no"}}, as_paper ? std::optional(2.0) : kNotGiven},
      {name + ": + zero-wait writes", {}, as_paper ? std::optional(3.3 / 1.6) : kNotGiven},
  };
}

}  // namespace

Result<Report> RunSephashFigure19(const Settings& settings) {
  const std::array<Technique, 3> reads = {
      Technique{"searches: base", {{"fptable", "none"}, {"filter", "no"}}, kNotGiven},
      Technique{"searches: + FPTables", {{"filter", "no"}}, 22.0},
      Technique{"searches: + filter", {}, 44.0},
  };
  Report report;
  report.note =
      "The paper has 22 times for FPTables and twice that with the filter. The base of inserts frees its "
      "slots\n"
      "as the others do, by the epoch. What binds:";
  uint64_t inserted = 0;
  for (const uint32_t clients : {kSephashClients, kFewClients}) {
    BenchCommand inserts = Inserts(settings, clients);
    if (!settings.full) {
      // So that a short run splits often.
      inserts.records = settings.Scaled(300'000, 0, 4000);
      inserts.options["entries"] = "62";
      inserts.options["main"] = "8";
    }
    inserted = inserts.records;
    if (Status added = AddTechniques(WritesBy(clients), inserts, report, settings); !added.ok())
      return added.error();
  }
  BenchCommand searches = Searches(settings, kSephashClients);
  // MainSegments of a table that began with fewer segments are as large as the paper's.
  searches.options["segments"] = "16";
  searches.ops = settings.Scaled(40'000, 1'000'000, 2000);
  searches.warmup = *searches.ops / 4;
  if (Status added = AddTechniques(reads, searches, report, settings); !added.ok()) return added.error();
  report.set_up = fmt::format(
      "{} clients, one memory node; simulated. {} inserts (puts) into a table that begins with {} segments;\n"
      "CurSegments of 62 entries and MainSegments of 8 of them, so that a short run splits often; with "
      "--full\n"
      "126 and 64. Searches of {} records, drawn uniformly, in a table of the usual shape.",
      kSephashClients, Grouped(inserted), kFirstSegments, Grouped(searches.records));
  return report;
}

// ---- figures 20, 21 and 22: shapes -----------------------------------------------------------------------

namespace {

// Inserts, then searches, of one run.
Status AddBoth(const std::string& name, const BenchCommand& command, const Settings& settings,
               Report& report) {
  const Result<BenchRun> run = MeasurePuts(command, settings);
  if (!run.ok()) return run.error();
  report.rows.push_back(
      {name + ", inserts", kNotGiven, OpsPerSecond(*run->load), Rule::Reported(), Unit::kOpsPerSecond});
  report.rows.push_back(
      {name + ", searches", kNotGiven, OpsPerSecond(*run->run), Rule::Reported(), Unit::kOpsPerSecond});
  report.note += fmt::format("\n  {:<28}{}", name, WhatBinds(*run));
  return OkStatus();
}

std::string SetUpOf(const Settings& settings) {
  return fmt::format(
      "{} records put by {} clients into a table that begins with {} segments, then {} searches, drawn\n"
      "uniformly; simulated.",
      Grouped(RecordsOf(settings)), kSephashClients, kFirstSegments, Grouped(SearchesOf(settings)));
}

}  // namespace

Result<Report> RunSephashFigure20(const Settings& settings) {
  constexpr uint64_t kHeld = 2048;  // CurSegments that the MainSegments of a table hold at first
  uint64_t records = 0;
  Report report;
  report.set_up = SetUpOf(settings) +
                  " A MainSegment has 64 CurSegments, and a CurSegment 126 entries,\n"
                  "unless the row says otherwise.";
  report.note = "What binds searches:";
  for (const uint32_t entries : {14, 30, 62, 126}) {
    BenchCommand command = Searches(settings, kSephashClients);
    command.options["entries"] = std::to_string(entries);
    const std::string name = fmt::format("CurSegment of {} bytes", (entries + 2) * 8);
    if (Status added = AddBoth(name, command, settings, report); !added.ok()) return added.error();
  }
  for (const uint32_t main : {8, 16, 32, 64}) {
    BenchCommand command = Searches(settings, kSephashClients);
    // All of them begin with the same room, and split when it is full.
    command.records = settings.Scaled(300'000, 3'000'000, 4000);
    command.options["segments"] = std::to_string(kHeld / main);
    command.options["main"] = std::to_string(main);
    const std::string name = fmt::format("MainSegment of {} kB", main);
    if (Status added = AddBoth(name, command, settings, report); !added.ok()) return added.error();
    records = command.records;
  }
  report.set_up += fmt::format(
      " Rows by MainSegment: {} records, in a table\n"
      "that begins with room for {} in as many MainSegments as that takes.",
      Grouped(records), Grouped(kHeld * index::sephash::Shape().entries));
  return report;
}

Result<Report> RunSephashFigure21(const Settings& settings) {
  Report report;
  report.set_up = SetUpOf(settings);
  report.note = "A table has a directory on each of its nodes. What binds searches:";
  for (const uint32_t nodes : {1, 2, 4}) {
    BenchCommand command = Searches(settings, kSephashClients);
    command.nodes = nodes;
    command.options["segments"] = std::to_string(kFirstSegments / nodes);
    const std::string name = fmt::format("{} memory node{}", nodes, nodes == 1 ? "" : "s");
    if (Status added = AddBoth(name, command, settings, report); !added.ok()) return added.error();
  }
  return report;
}

Result<Report> RunSephashFigure22(const Settings& settings) {
  Report report;
  report.set_up = SetUpOf(settings) + " Keys of 16 bytes.";
  report.note =
      "Entries say how long a block is if that is at most 320 bytes; of a longer one, a search reads the "
      "first\n"
      "line, and then the rest. What binds searches:";
  for (const uint64_t size : {64, 128, 256, 512, 1024, 4096}) {
    BenchCommand command = Searches(settings, kSephashClients);
    command.value_size = size - command.key_size;
    if (Status added = AddBoth(fmt::format("records of {} bytes", size), command, settings, report);
        !added.ok())
      return added.error();
  }
  return report;
}

}  // namespace farside::tools::paper
