// Trips, memory of clients, bytes and loads of the chime table.
#include "tools/paper/chime.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/common/output.h"
#include "tools/paper/bench_figures.h"
#include "tools/paper/trips.h"

namespace farside::tools::paper {
namespace {

namespace chime = index::chime;

constexpr std::optional<double> kNotGiven;

BenchCommand LoadOf(uint64_t records) {
  BenchCommand command;
  command.engine = "chime";
  command.options = {{"keys", "inline"}};
  command.workload = "load";
  command.records = records;
  return command;
}

// ---- table 1: round trips ------------------------------------------------------------------------------

struct Table1 {
  TripFigures inside;  // keys=inline
  TripFigures beside;  // keys=bytes
};

constexpr std::array kTable1 = {
    Claim<Table1>{"search", 1, Rule::AtMost(1.02), Unit::kTrips,
                  [](const Table1& t) { return t.inside.search.index; }},
    Claim<Table1>{"insert, splits counted", 3, Rule::AtMost(2.6), Unit::kTrips,
                  [](const Table1& t) { return t.inside.insert.index; }},
    Claim<Table1>{"update", 3, Rule::AtMost(2.1), Unit::kTrips,
                  [](const Table1& t) { return t.inside.update.index; }},
    Claim<Table1>{"delete", 3, Rule::AtMost(2.1), Unit::kTrips,
                  [](const Table1& t) { return t.inside.erase.index; }},
    Claim<Table1>{"scan of 100", 1, Rule::AtMost(1.05), Unit::kTrips,
                  [](const Table1& t) { return t.inside.scan.index; }},
    Claim<Table1>{"search of an absent key", kNotGiven, Rule::AtMost(2.02), Unit::kTrips,
                  [](const Table1& t) { return t.inside.absent.index; }},
    Claim<Table1>{"search, blocks, index trips", kNotGiven, Rule::AtMost(1.02), Unit::kTrips,
                  [](const Table1& t) { return t.beside.search.index; }},
    Claim<Table1>{"search, blocks, end to end", kNotGiven, Rule::AtMost(2.02), Unit::kTrips,
                  [](const Table1& t) { return t.beside.search.end_to_end; }},
    Claim<Table1>{"insert, blocks, splits counted", kNotGiven, Rule::AtMost(2.6), Unit::kTrips,
                  [](const Table1& t) { return t.beside.insert.index; }},
    Claim<Table1>{"update, blocks, end to end", kNotGiven, Rule::AtMost(3.1), Unit::kTrips,
                  [](const Table1& t) { return t.beside.update.end_to_end; }},
    Claim<Table1>{"scan of 100, blocks, index trips", kNotGiven, Rule::AtMost(1.05), Unit::kTrips,
                  [](const Table1& t) { return t.beside.scan.index; }},
    Claim<Table1>{"scan of 100, blocks, end to end", kNotGiven, Rule::Reported(), Unit::kTrips,
                  [](const Table1& t) { return t.beside.scan.end_to_end; }},
};

Result<Report> RunTable1(const Settings& settings) {
  TripsPlan plan{.engine = "chime", .records = settings.Scaled(200'000, 3'000'000, 2000)};
  plan.options["keys"] = "inline";
  Result<TripFigures> inside = MeasureTrips(plan, settings.progress);
  if (!inside.ok()) return inside.error();
  plan.options["keys"] = "bytes";
  Result<TripFigures> beside = MeasureTrips(plan, settings.progress);
  if (!beside.ok()) return beside.error();
  Report report;
  report.set_up = fmt::format(
      "{} records, keys and values of 8 bytes, inserted into an empty table in no order; then every record\n"
      "is searched and updated, 100 are scanned from every 100th, and every second one is deleted. One "
      "client\n"
      "that remembers all inner nodes; counted, not timed. Without a word: keys=inline; blocks: keys=bytes.",
      Grouped(plan.records));
  report.rows = Compare<Table1>(kTable1, {std::move(*inside), std::move(*beside)});
  report.note =
      "The paper's are of its best case, without splits: 1 or 2 for a search, 3 or 4 for an update or a "
      "delete\n"
      "(the larger ones after a wrong speculation). Ours lock and read in one trip.";
  return report;
}

// ---- figure 14: what a client remembers ------------------------------------------------------------------

constexpr double kRecordsOfPaper = 60e6;
constexpr double kCacheOfPaper = 27.6e6;
// What the paper's figure comes to: so many bytes for each inner node, and for each pivot in them.
constexpr double kNodeBytes = 51;
constexpr double kPivotBytes = 17;

double LawOf(const index::TableStats& stats) {
  const double nodes = Detail(stats, "inner nodes");
  // All nodes but the root are children of others.
  return nodes * kNodeBytes + (Detail(stats, "leaves") + nodes - 1) * kPivotBytes;
}

Result<Report> RunFigure14(const Settings& settings) {
  const uint64_t most = settings.Scaled(400'000, 10'000'000, 8000);
  Report report;
  Plot plot;
  plot.title = "memory of a client by records";
  plot.y_unit = "kB";
  constexpr uint64_t kSteps = 4;
  for (uint64_t step = 1; step <= kSteps; ++step) {
    const uint64_t records = most * step / kSteps;
    const Result<BenchRun> run = Measure(LoadOf(records), settings);
    if (!run.ok()) return run.error();
    const auto bytes = Detail(run->stats, "cache bytes");
    report.rows.push_back(
        {fmt::format("{} records", Grouped(records)), kNotGiven, bytes, Rule::Reported(), Unit::kBytes});
    plot.columns.insert(plot.columns.end(), kPlotWidth / kSteps, bytes / 1e3);
    if (step == 1) plot.x_begin = Grouped(records);
    plot.x_end = Grouped(records);
    if (step < kSteps) continue;
    report.rows.push_back({"of 51 bytes a node and 17 a pivot", kNotGiven, bytes / LawOf(run->stats),
                           Rule::AtMost(1.03), Unit::kShare});
    report.rows.push_back({"60 million records, by proportion", kCacheOfPaper,
                           bytes * kRecordsOfPaper / static_cast<double>(records),
                           Rule::AtMost(1.03 * kCacheOfPaper), Unit::kBytes});
    report.rows.push_back({"inner nodes that it remembers", kNotGiven,
                           Detail(run->stats, "cached nodes") / Detail(run->stats, "inner nodes"),
                           Rule::AtLeast(1), Unit::kShare});
    report.rows.push_back(
        {"load of the leaves", kNotGiven, Detail(run->stats, "load"), Rule::Reported(), Unit::kShare});
  }
  report.plots.push_back(std::move(plot));
  report.set_up =
      "keys=inline, random keys, inserted by one client that remembers all inner nodes; all that it keeps "
      "is\n"
      "counted, with the hash table that leads to the nodes.";
  report.note =
      "51 bytes for a node and 17 for a pivot are what the paper's 27.6 MB come to. Its buffer of hot "
      "entries\n"
      "is counted apart.";
  return report;
}

// ---- figure 16: metadata ---------------------------------------------------------------------------------

constexpr double kItemBytes = 16;

double MetadataOf(const chime::Shape& shape) {
  return static_cast<double>(shape.leaf_bytes()) / static_cast<double>(shape.span) - kItemBytes;
}

Result<Report> RunFigure16(const Settings& settings) {
  const uint64_t records = settings.Scaled(200'000, 10'000'000, 2000);
  const Result<BenchRun> run = Measure(LoadOf(records), settings);
  if (!run.ok()) return run.error();
  const chime::Shape inside{.inline_keys = true};
  const chime::Shape beside;
  const double load = Detail(run->stats, "load");
  Report report;
  report.set_up = fmt::format(
      "From the layout, for leaves of {} entries, keys and values of 8 bytes: what a leaf has beside its\n"
      "items, for each of its entries. A record takes more, since leaves are not full: {} records, as a "
      "load\n"
      "leaves them.",
      inside.span, Grouped(records));
  report.rows = {
      {"metadata of an entry, bytes", 4.56, MetadataOf(inside), Rule::AtMost(4.56), Unit::kNumber},
      {"the same beside the paper's with fence keys", 6.59, MetadataOf(inside), Rule::AtMost(6.59),
       Unit::kNumber},
      {"metadata of an entry, keys=bytes, without blocks", kNotGiven, MetadataOf(beside), Rule::Reported(),
       Unit::kNumber},
      {"a leaf, keys=inline", 1316, static_cast<double>(inside.leaf_bytes()), Rule::AtMost(1316),
       Unit::kBytes},
      {"an inner node, keys=inline", 1148, static_cast<double>(inside.inner_bytes()), Rule::AtMost(1148),
       Unit::kBytes},
      {"far memory of a record, all told", kNotGiven,
       static_cast<double>(run->memory.index_bytes) / static_cast<double>(run->records), Rule::Reported(),
       Unit::kBytes},
      {"load of the leaves", kNotGiven, load, Rule::Reported(), Unit::kShare},
  };
  report.note =
      "The paper's figures are computed from its description. Ours is the header, and the fence is among "
      "it:\n"
      "entries need no versions, as none lies in two lines, and the top bit of a key, which all keys of a "
      "leaf\n"
      "share, says whether an entry is used.";
  return report;
}

// ---- figures 3d, 18f, 19a and 19b: load at split ------------------------------------------------------

// Fills leaves until a key finds no room; of the lower half of the keys, as nothing else is said of them.
double MeanLoadAtSplit(const chime::Shape& shape, uint64_t leaves, Random& random) {
  uint64_t inserted = 0;
  for (uint64_t i = 0; i < leaves; ++i) {
    chime::Leaf leaf;
    while (true) {
      const chime::Entry entry{.used = true, .key = random.Next() & ~chime::kMiddle, .value = 0};
      const auto path = FindRoom(shape, leaf, HomeOf(shape, entry));
      if (!path.has_value()) break;
      for (size_t step = path->size() - 1; step > 0; --step)
        leaf.Set(shape, (*path)[step], leaf.Get(shape, (*path)[step - 1]));
      leaf.Set(shape, (*path)[0], entry);
      ++inserted;
    }
  }
  return static_cast<double>(inserted) / static_cast<double>(shape.span * leaves);
}

struct Filling {
  size_t span;
  size_t neighbourhood;
  std::optional<double> paper;
};
constexpr std::array kFillings = {
    Filling{64, 2, 0.377},    Filling{64, 4, kNotGiven}, Filling{64, 8, 0.881},     Filling{64, 16, 0.998},
    Filling{8, 8, kNotGiven}, Filling{16, 8, kNotGiven}, Filling{32, 8, kNotGiven},
};

Result<Report> RunFigure19(const Settings& settings) {
  const uint64_t leaves = settings.Scaled(2000, 50'000, 50);
  const uint64_t records = settings.Scaled(60'000, 1'000'000, 2000);
  Report report;
  Random random(1);
  for (const Filling& filling : kFillings) {
    const chime::Shape shape{
        .span = filling.span, .neighbourhood = filling.neighbourhood, .inline_keys = true};
    const Rule rule = filling.paper.has_value() ? Rule::AtLeast(*filling.paper) : Rule::Reported();
    report.rows.push_back(
        {fmt::format("span {}, neighbourhood {}, load at split", shape.span, shape.neighbourhood),
         filling.paper, MeanLoadAtSplit(shape, leaves, random), rule, Unit::kShare});
  }
  for (const Filling& filling : kFillings) {
    BenchCommand command = LoadOf(records);
    command.options["span"] = std::to_string(filling.span);
    command.options["neighbourhood"] = std::to_string(filling.neighbourhood);
    const Result<BenchRun> run = Measure(command, settings);
    if (!run.ok()) return run.error();
    const auto bytes = Detail(run->stats, "cache bytes");
    report.rows.push_back({fmt::format("span {}, neighbourhood {}, client memory of 1000 records",
                                       filling.span, filling.neighbourhood),
                           kNotGiven, 1000 * bytes / static_cast<double>(run->records), Rule::Reported(),
                           Unit::kBytes});
  }
  report.set_up = fmt::format(
      "{} leaves of each shape, filled with random keys until one finds no room: their mean load. Then what "
      "a\n"
      "client remembers of {} records in leaves of that shape.",
      Grouped(leaves), Grouped(records));
  report.note =
      "The paper's are its maximum load factors at a span of 64. Ours look for the shortest way to any free\n"
      "slot, and find one more often.";
  return report;
}

// ---- section 4.3: speculative reads ----------------------------------------------------------------------

Result<Report> RunSpeculation(const Settings& settings) {
  const uint64_t records = settings.Scaled(200'000, 10'000'000, 2000);
  const uint64_t searches = 10 * records;
  Report report;
  for (const std::string_view workload : {"c", "b", "d"}) {
    BenchCommand command = LoadOf(records);
    command.options["hotspot"] = std::to_string(records / kRecordsPerHotspotByte);
    command.workload = workload;
    command.ops = searches;
    const Result<BenchRun> run = Measure(command, settings);
    if (!run.ok()) return run.error();
    const bool reads_only = workload == "c";
    report.rows.push_back({fmt::format("{}: searches whose key is remembered", workload),
                           reads_only ? std::optional(0.81) : kNotGiven,
                           Detail(run->stats, "hotspot hit ratio"), Rule::Reported(), Unit::kShare});
    report.rows.push_back({fmt::format("{}: of those, the key was there", workload), kNotGiven,
                           Detail(run->stats, "right speculations"), Rule::AtLeast(0.98), Unit::kShare});
    const std::optional<KindCost> search = CostOf(*run->run, fabric::OpKind::kSearch);
    if (!search.has_value()) continue;
    report.rows.push_back({fmt::format("{}: trips of a search", workload), kNotGiven, search->index_trips,
                           Rule::AtMost(1.02), Unit::kTrips});
  }
  report.set_up = fmt::format(
      "keys=inline, {} records, zipfian, {} operations of one client that begins without any hotspots; {} "
      "bytes\n"
      "for them, in proportion to the paper's 30 MB for 60 million records.",
      Grouped(records), Grouped(searches), Grouped(records / kRecordsPerHotspotByte));
  report.note = "The paper's is of a buffer that is full from the start. Ours fills while it is measured.";
  return report;
}

constexpr std::array kExperiments = {
    Experiment{"chime-table1", "round trips per operation (CHIME, table 1)", RunTable1},
    Experiment{"chime-figure14", "what a client remembers (CHIME, figure 14)", RunFigure14},
    Experiment{"chime-figure15", "techniques one by one (CHIME, figure 15)", RunChimeFigure15},
    Experiment{"chime-figure16", "bytes beside keys and values (CHIME, figure 16)", RunFigure16},
    Experiment{"chime-figure19", "load of leaves by span and neighbourhood (CHIME, figures 3d and 19)",
               RunFigure19},
    Experiment{"chime-speculation", "searches by where keys were found last (CHIME, section 4.3)",
               RunSpeculation},
    Experiment{"chime-sherman", "throughput beside a B+ tree read like Sherman (CHIME, figure 12)",
               RunChimeSherman},
};

}  // namespace

std::span<const Experiment> ChimeExperiments() { return kExperiments; }

}  // namespace farside::tools::paper
