#include "tools/paper/shard.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "index/shard/layout.h"
#include "pool/region/layout.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/common/output.h"
#include "tools/paper/bench_figures.h"
#include "tools/paper/timeline.h"
#include "tools/paper/trips.h"

namespace farside::tools::paper {
namespace {

constexpr std::optional<double> kNotGiven;

// As in the paper: without a location cache.
BenchCommand Shard(std::string_view workload, uint64_t records) {
  BenchCommand command;
  command.engine = "shard";
  command.options = {{"cache", "0"}};
  command.workload = workload;
  command.records = records;
  return command;
}

// ---- table 3: round trips ------------------------------------------------------------------------------

struct Table3 {
  TripFigures plain;
  TripFigures cached;
};

// Index trips of the paper are what our counters call so: a block that is read or written beside is not among
// them.
// 1.00 exactly cannot be for a search: some keys live in level 2.
constexpr std::array kTable3 = {
    Claim<Table3>{"search, index trips", 1.00, Rule::AtMost(1.05), Unit::kTrips,
                  [](const Table3& t) { return t.plain.search.index; }},
    Claim<Table3>{"update, index trips", 2.00, Rule::AtMost(2.05), Unit::kTrips,
                  [](const Table3& t) { return t.plain.update.index; }},
    Claim<Table3>{"delete, index trips", 2.00, Rule::AtMost(2.05), Unit::kTrips,
                  [](const Table3& t) { return t.plain.erase.index; }},
    Claim<Table3>{"insert, index trips", 2.59, Rule::AtMost(2.30), Unit::kTrips,
                  [](const Table3& t) { return t.plain.insert.index; }},
    Claim<Table3>{"search of an absent key, index trips", kNotGiven, Rule::AtMost(1.75), Unit::kTrips,
                  [](const Table3& t) { return t.plain.absent.index; }},
    Claim<Table3>{"search, end to end", kNotGiven, Rule::AtMost(2.05), Unit::kTrips,
                  [](const Table3& t) { return t.plain.search.end_to_end; }},
    Claim<Table3>{"insert, end to end", kNotGiven, Rule::AtMost(2.35), Unit::kTrips,
                  [](const Table3& t) { return t.plain.insert.end_to_end; }},
    Claim<Table3>{"update, end to end", kNotGiven, Rule::AtMost(3.05), Unit::kTrips,
                  [](const Table3& t) { return t.plain.update.end_to_end; }},
    Claim<Table3>{"delete, end to end", kNotGiven, Rule::Reported(), Unit::kTrips,
                  [](const Table3& t) { return t.plain.erase.end_to_end; }},
    Claim<Table3>{"repeated search with location cache, end to end", kNotGiven, Rule::AtMost(1.01),
                  Unit::kTrips, [](const Table3& t) { return t.cached.repeated_search.end_to_end; }},
    Claim<Table3>{"maintenance beside an insert", kNotGiven, Rule::Reported(), Unit::kTrips,
                  [](const Table3& t) { return t.plain.maintenance_beside_inserts; }},
};

Result<Report> RunTable3(const Settings& settings) {
  TripsPlan plan{
      .engine = "shard", .options = {{"cache", "0"}}, .records = settings.Scaled(300'000, 3'000'000, 1000)};
  Result<TripFigures> plain = MeasureTrips(plan, settings.progress);
  if (!plain.ok()) return plain.error();
  plan.options["cache"] = std::to_string(2 * plan.records);
  Result<TripFigures> cached = MeasureTrips(plan, settings.progress);
  if (!cached.ok()) return cached.error();
  Report report;
  report.set_up = fmt::format(
      "{} records, keys and values of 8 bytes, inserted into an empty table; then every record is\n"
      "searched and updated, and every second one deleted. One client, counted, not timed.",
      Grouped(plan.records));
  report.rows = Compare<Table3>(kTable3, {std::move(*plain), std::move(*cached)});
  return report;
}

// ---- table 4: space ------------------------------------------------------------------------------------

struct Table4 {
  BenchRun plain;
  BenchRun cached;
  uint64_t locations = 0;  // that the cache was asked to hold
};

// Of the memory of buckets in levels 1 and 2, what is entries.
double BucketUtilisation() {
  const index::shard::Shape shape;
  const uint64_t entries = (shape.slots + shape.overflow_slots) * sizeof(index::shard::Entry);
  return static_cast<double>(entries) /
         static_cast<double>(shape.bucket_bytes() + sizeof(index::shard::Line));
}

double PerRecord(uint64_t bytes, const BenchRun& run) {
  return static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(run.records, 1));
}

constexpr std::array kTable4 = {
    Claim<Table4>{"space of buckets that is entries", 1.00, Rule::AtLeast(1.0), Unit::kShare,
                  [](const Table4&) { return BucketUtilisation(); }},
    Claim<Table4>{"space of the whole index that is entries", kNotGiven, Rule::AtLeast(0.95), Unit::kShare,
                  [](const Table4& t) {
                    const double entries = 8.0 * static_cast<double>(t.plain.stats.slots);
                    return entries / static_cast<double>(t.plain.stats.index_bytes);
                  }},
    Claim<Table4>{"client cache, directory", 2.36e6, Rule::Below(1024), Unit::kBytes,
                  [](const Table4& t) { return Detail(t.plain.stats, "directory bytes"); }},
    Claim<Table4>{"client cache, all of it", kNotGiven, Rule::Below(1024), Unit::kBytes,
                  [](const Table4& t) { return static_cast<double>(t.plain.stats.client_bytes); }},
    Claim<Table4>{"location cache, a location that was asked for", kNotGiven, Rule::AtMost(80), Unit::kBytes,
                  [](const Table4& t) {
                    return Detail(t.cached.stats, "location cache bytes") / static_cast<double>(t.locations);
                  }},
    Claim<Table4>{"far memory of a record, index", kNotGiven, Rule::Reported(), Unit::kBytes,
                  [](const Table4& t) { return PerRecord(t.plain.memory.index_bytes, t.plain); }},
    Claim<Table4>{"far memory of a record, block", kNotGiven, Rule::Reported(), Unit::kBytes,
                  [](const Table4& t) { return PerRecord(t.plain.memory.block_bytes, t.plain); }},
    Claim<Table4>{"load of the table", kNotGiven, Rule::Reported(), Unit::kShare,
                  [](const Table4& t) { return Detail(t.plain.stats, "load"); }},
};

Result<Report> RunTable4(const Settings& settings) {
  BenchCommand command = Shard("load", settings.Scaled(300'000, 10'000'000, 1000));
  command.nodes = 3;
  Table4 figures;
  Result<BenchRun> plain = Measure(command, settings);
  if (!plain.ok()) return plain.error();
  figures.plain = std::move(*plain);
  figures.locations = command.records / 3;
  command.options["cache"] = std::to_string(figures.locations);
  Result<BenchRun> cached = Measure(command, settings);
  if (!cached.ok()) return cached.error();
  figures.cached = std::move(*cached);
  Report report;
  report.set_up =
      fmt::format("{} records, keys and values of 8 bytes, on three memory nodes, as a load leaves them.",
                  Grouped(command.records));
  report.rows = Compare<Table4>(kTable4, figures);
  report.note =
      "The paper's 2.36 MB are of 4 trillion records; a directory grows by 8 bytes with every doubling, and\n"
      "ours has its full size from the start. The location cache takes what the user gives it, rounded up to "
      "a\n"
      "power of two of locations.";
  return report;
}

// ---- levels --------------------------------------------------------------------------------------------

constexpr double kLoadOfClaim = 0.8;

constexpr std::array kLevels = {
    Claim<BenchRun>{"records in level 1", 0.97, Rule::Above(0.97), Unit::kShare,
                    [](const BenchRun& run) { return Detail(run.stats, "share in level 1"); }},
    Claim<BenchRun>{"records in level 2", kNotGiven, Rule::Reported(), Unit::kShare,
                    [](const BenchRun& run) { return Detail(run.stats, "share in level 2"); }},
    Claim<BenchRun>{"records in level 3", kNotGiven, Rule::Reported(), Unit::kShare,
                    [](const BenchRun& run) { return Detail(run.stats, "share in level 3"); }},
    Claim<BenchRun>{"load of levels 1 and 2", kNotGiven, Rule::AtLeast(0.799), Unit::kShare,
                    [](const BenchRun& run) { return Detail(run.stats, "load"); }},
    Claim<BenchRun>{"resizes", kNotGiven, Rule::AtMost(0), Unit::kNumber,
                    [](const BenchRun& run) { return Detail(run.stats, "resizes"); }},
};

Result<Report> RunLevels(const Settings& settings) {
  const uint64_t buckets = std::bit_ceil(settings.Scaled(4096, 65536, 64));
  const index::shard::Shape shape;
  const auto capacity = static_cast<double>(buckets * (shape.slots + shape.overflow_slots));
  BenchCommand command = Shard("load", static_cast<uint64_t>(std::ceil(kLoadOfClaim * capacity)));
  command.options = {{"buckets", std::to_string(buckets)}, {"max_load", "0.95"}};
  const Result<BenchRun> run = Measure(command, settings);
  if (!run.ok()) return run.error();
  Report report;
  report.set_up = fmt::format("{} buckets that are not resized, filled with {} records to a load of 0.8.",
                              Grouped(buckets), Grouped(command.records));
  report.rows = Compare<BenchRun>(kLevels, *run);
  return report;
}

// ---- figure 16: throughput through resizes ---------------------------------------------------------------

constexpr Nanos kWindow = std::chrono::milliseconds(1);
constexpr size_t kWindowsOfClaim = 10;
constexpr uint64_t kDoublings = 3;  // that a run passes through, at least

struct Resizing {
  std::string_view what;
  uint32_t clients;
  double least;      // share of the steady rate
  uint64_t buckets;  // at the end; more clients need more, or the run is over in a moment
};
constexpr std::array kResizings = {
    Resizing{"few clients, latency binds", 8, 0.60, 32768},
    Resizing{"many clients, the NIC binds", 128, 0.45, 32768},
};
constexpr uint64_t kFullBuckets = uint64_t{1} << 20;

Status AddResizing(const Resizing& resizing, const Settings& settings, Report& report) {
  const uint64_t buckets = std::bit_ceil(settings.Scaled(resizing.buckets, kFullBuckets, 512));
  const index::shard::Shape shape;
  const uint64_t records = buckets * (shape.slots + shape.overflow_slots) * 7 / 10;
  BenchCommand command = Shard("load", records);
  command.fabric = "sim";
  command.clients = resizing.clients;
  command.compute_nodes = 3;
  command.options = {{"buckets", std::to_string(buckets >> kDoublings)}};
  const Result<BenchRun> run = Measure(command, settings, kWindow);
  if (!run.ok()) return run.error();
  const Evenness evenness = MeasureEvenness(run->run->windows, kWindow, kWindowsOfClaim);
  const std::string name = fmt::format("{} clients", resizing.clients);
  report.rows.push_back({fmt::format("{}, slowest 10 ms, of the steady rate", name), kNotGiven,
                         evenness.share(), Rule::AtLeast(resizing.least), Unit::kShare});
  report.rows.push_back({fmt::format("{}, steady rate", name), kNotGiven, evenness.steady, Rule::Reported(),
                         Unit::kOpsPerSecond});
  report.rows.push_back({fmt::format("{}, over all", name), kNotGiven, OpsPerSecond(*run->run),
                         Rule::Reported(), Unit::kOpsPerSecond});
  report.rows.push_back({fmt::format("{}, resizes", name), kNotGiven, Detail(run->stats, "resizes"),
                         Rule::AtLeast(static_cast<double>(kDoublings)), Unit::kNumber});
  report.plots.push_back(
      PlotOf(*run->run, kWindow,
             fmt::format("{} ({}): {} inserts, from {} to {} buckets", resizing.what, name, Grouped(records),
                         Grouped(buckets >> kDoublings), Grouped(buckets))));
  return OkStatus();
}

Result<Report> RunFigure16(const Settings& settings) {
  Report report;
  report.set_up =
      "Inserts only, on a simulated cluster with one memory node; times are virtual. The steady rate is what "
      "one\n"
      "in ten stretches of 10 ms exceeds; the slowest is the slowest of all, wherever it begins.";
  for (const Resizing& resizing : kResizings) {
    if (Status added = AddResizing(resizing, settings, report); !added.ok()) return added.error();
  }
  report.note = "The paper's text says that throughput degrades for 0.3 s at worst, and gives no depth.";
  return report;
}

// ---- figure 18: alpha ------------------------------------------------------------------------------------

constexpr size_t kAlphaOfPaper = 3;

uint64_t RecordsOfFigure18(const Settings& settings) { return settings.Scaled(150'000, 3'000'000, 2000); }

Result<Report> RunFigure18(const Settings& settings) {
  std::array<double, kAlphas.size()> rates{};
  Report report;
  Plot plot;
  plot.title = "insert throughput by alpha";
  plot.y_unit = "M/s";
  plot.x_begin = kAlphas.front();
  plot.x_end = kAlphas.back();
  for (size_t i = 0; i < kAlphas.size(); ++i) {
    const Result<BenchRun> run = MeasureAlpha(kAlphas[i], settings);
    if (!run.ok()) return run.error();
    rates[i] = OpsPerSecond(*run->run);
    report.rows.push_back({fmt::format("alpha {}, inserts", kAlphas[i]), kNotGiven, rates[i],
                           Rule::Reported(), Unit::kOpsPerSecond});
    plot.columns.insert(plot.columns.end(), kPlotWidth / kAlphas.size(), rates[i] / 1e6);
  }
  const size_t best = static_cast<size_t>(std::max_element(rates.begin(), rates.end()) - rates.begin());
  report.rows.push_back(
      {"alpha that is best", 0.1, std::stod(std::string(kAlphas[best])), Rule::Reported(), Unit::kNumber});
  report.rows.push_back({"throughput at alpha 0.1, of the best", 1.0, rates[kAlphaOfPaper] / rates[best],
                         Rule::AtLeast(0.95), Unit::kShare});
  report.rows.push_back({"throughput at alpha 0.0001, of the best", kNotGiven, rates.front() / rates[best],
                         Rule::Reported(), Unit::kShare});
  report.rows.push_back({"throughput at alpha 10, of the best", kNotGiven, rates.back() / rates[best],
                         Rule::Reported(), Unit::kShare});
  report.plots.push_back(std::move(plot));
  report.set_up =
      fmt::format("{} inserts by 64 clients, for each alpha, on a simulated cluster with one memory node.",
                  Grouped(RecordsOfFigure18(settings)));
  report.note =
      "The paper finds the best throughput at 0.1, and less on both sides. Ours divides alpha by the number "
      "of\n"
      "clients: too small a value costs syncs, too large a one lets buckets overflow before clients notice.";
  return report;
}

// ---- figure 13: of raw -------------------------------------------------------------------------------

constexpr uint32_t kClientsOfFigure13 = 128;

BenchCommand OnCluster(std::string_view workload, uint64_t records) {
  BenchCommand command = Shard(workload, records);
  command.fabric = "sim";
  command.distribution = workload == "load" ? "" : "uniform";
  command.nodes = 3;
  command.compute_nodes = 3;
  command.clients = kClientsOfFigure13;
  return command;
}

Status AddOfRaw(std::string_view what, const BenchCommand& command, const std::optional<workload::Mix>& mix,
                Rule rule, uint64_t raw_trips, const Settings& settings, Report& report) {
  Result<BenchPlan> plan = PlanBench(command);
  if (!plan.ok()) return plan.error();
  if (mix.has_value()) plan->mix = *mix;
  const Result<OfRaw> share = MeasureOfRaw(*plan, raw_trips, settings);
  if (!share.ok()) return share.error();
  report.rows.push_back({fmt::format("{}, of raw", what), kNotGiven, share->share(), rule, Unit::kShare});
  report.rows.push_back(
      {fmt::format("{}, throughput", what), kNotGiven, share->ours, Rule::Reported(), Unit::kOpsPerSecond});
  return OkStatus();
}

Result<Report> RunFigure13(const Settings& settings) {
  const uint64_t records = settings.Scaled(60'000, 3'000'000, 2000);
  BenchCommand search = OnCluster("c", records);
  search.ops = settings.Scaled(200'000, 3'000'000, 10'000);
  search.warmup = settings.Scaled(20'000, 100'000, 1000);
  BenchCommand cached = search;
  // Every client must have seen every record, or nearly; so there are few of them, in a table that begins
  // with room for them: many clients that insert a handful of records each do not notice soon that it should
  // grow.
  cached.records = settings.Scaled(2000, 20'000, 100);
  cached.warmup = cached.records * kClientsOfFigure13 * 5;
  cached.options["cache"] = std::to_string(16 * cached.records);
  cached.options["buckets"] = std::to_string(std::bit_ceil(cached.records / cached.nodes / 48 + 1));
  const workload::Mix update{.name = "update", .percent = {0, 100, 0, 0, 0}};
  Report report;
  if (Status added = AddOfRaw("search", search, {}, Rule::AtLeast(0.90), 2, settings, report); !added.ok())
    return added.error();
  if (Status added =
          AddOfRaw("search, location cache warm", cached, {}, Rule::AtLeast(0.95), 1, settings, report);
      !added.ok())
    return added.error();
  if (Status added = AddOfRaw("update", search, update, Rule::Reported(), 2, settings, report); !added.ok())
    return added.error();
  if (Status added =
          AddOfRaw("insert", OnCluster("load", records), {}, Rule::Reported(), 2, settings, report);
      !added.ok())
    return added.error();
  report.set_up = fmt::format(
      "{} clients on three machines, three memory nodes, {} records drawn uniformly; simulated. raw is a "
      "bare "
      "array\n"
      "of slots: a search READs a bucket of as many bytes, and a block, in two trips, or in one where the "
      "location\n"
      "cache is warm.",
      kClientsOfFigure13, Grouped(records));
  report.note = "The paper draws its throughput and the limit, and gives no figures in its text.";
  return report;
}

constexpr std::array kExperiments = {
    Experiment{"shard-table3", "round trips per operation (SHARD, table 3)", RunTable3},
    Experiment{"shard-table4", "space in far memory and at the client (SHARD, table 4)", RunTable4},
    Experiment{"shard-levels", "where records are at load 0.8 (SHARD, section 1)", RunLevels},
    Experiment{"shard-figure13", "throughput as a share of raw (SHARD, figure 13)", RunFigure13},
    Experiment{"shard-figure16", "throughput through resizes (SHARD, figure 16)", RunFigure16},
    Experiment{"shard-figure18", "how rarely clients sync: alpha (SHARD, figure 18)", RunFigure18},
};

}  // namespace

std::span<const Experiment> ShardExperiments() { return kExperiments; }

Result<BenchRun> MeasureAlpha(std::string_view alpha, const Settings& settings) {
  BenchCommand command = Shard("load", RecordsOfFigure18(settings));
  command.fabric = "sim";
  command.clients = 64;
  command.compute_nodes = 3;
  command.options = {{"alpha", std::string(alpha)}, {"buckets", "64"}};
  return Measure(command, settings);
}

}  // namespace farside::tools::paper
