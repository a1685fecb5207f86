// Trips, merges, space and evenness of the sephash table.
#include "tools/paper/sephash.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "index/sephash/layout.h"
#include "tools/bench/options.h"
#include "tools/bench/report.h"
#include "tools/common/output.h"
#include "tools/paper/bench_figures.h"
#include "tools/paper/timeline.h"
#include "tools/paper/trips.h"

namespace farside::tools::paper {
namespace {

namespace sephash = index::sephash;

constexpr std::optional<double> kNotGiven;
constexpr double kRecordsOfPaper = 100e6;
constexpr uint32_t kClientsPerMachine = 16;

double PerRecord(double amount, const BenchRun& run) {
  return amount / static_cast<double>(std::max<uint64_t>(run.records, 1));
}

// ---- trips -----------------------------------------------------------------------------------------------

// Changes of one client, told apart by what they have posted: one that merges WRITEs a MainSegment beside the
// byte of the filter; one that splits also makes an entry of the directory, without waiting for it.
class ChangeKinds {
 public:
  void Add(const fabric::OpTally& tally) {
    const fabric::VerbTally& index = tally.by_purpose[static_cast<size_t>(fabric::Purpose::kIndex)];
    const bool merges = index.bytes_written >= sephash::Shape().HeadBytes(0);
    const bool splits = merges && tally.detached_trips > 0;
    Sum& sum = splits ? split_ : merges ? merge_ : plain_;
    ++sum.operations;
    sum.trips += tally.end_to_end_trips;
  }

  double plain_trips() const { return plain_.Trips(); }
  // What a change that merges takes more than one that does not.
  double merge_trips() const { return Beside(merge_); }
  double split_trips() const { return Beside(split_); }

 private:
  struct Sum {
    uint64_t operations = 0;
    uint64_t trips = 0;
    double Trips() const {
      return static_cast<double>(trips) / static_cast<double>(std::max<uint64_t>(operations, 1));
    }
  };
  // 0: there was none.
  double Beside(const Sum& sum) const { return sum.operations == 0 ? 0 : sum.Trips() - plain_.Trips(); }

  Sum plain_;
  Sum merge_;
  Sum split_;
};

struct Trips {
  TripFigures from_empty;
  TripFigures unmerged;  // with room for all records in CurSegments
  ChangeKinds inserts_by_kind;
  ChangeKinds updates_by_kind;
  ChangeKinds puts_by_kind;
  BenchRun inserts;  // by 64 clients
  BenchRun puts;
};

constexpr uint32_t kManyClients = 64;

// Of the merges of client 0: those that another client was faster with.
double LostMerges(const BenchRun& run) {
  const double lost = Detail(run.stats, "merges lost by this client");
  return lost / std::max(lost + Detail(run.stats, "merges by this client"), 1.0);
}
double RetriesOf(const BenchRun& run) { return CostOf(*run.run).retries; }
double FailedCasOf(const BenchRun& run) { return CostOf(*run.run).cas_failed; }
double InsertTrips(const BenchRun& run) {
  const std::optional<KindCost> cost = CostOf(*run.run, fabric::OpKind::kInsert);
  return cost.has_value() ? cost->end_to_end_trips : 0;
}

constexpr std::array kTrips = {
    Claim<Trips>{"insert, merges and splits counted", 11.56, Rule::AtMost(2.5), Unit::kTrips,
                 [](const Trips& t) {
                   return t.from_empty.insert.end_to_end + t.from_empty.maintenance_beside_inserts;
                 }},
    Claim<Trips>{"of these, maintenance", kNotGiven, Rule::Reported(), Unit::kTrips,
                 [](const Trips& t) { return t.from_empty.maintenance_beside_inserts; }},
    Claim<Trips>{"put that does not merge", 2, Rule::AtMost(2.0), Unit::kTrips,
                 [](const Trips& t) { return t.puts_by_kind.plain_trips(); }},
    // Some keys have the tag of another one, whose block is read then.
    Claim<Trips>{"insert that does not merge", 2, Rule::AtMost(2.05), Unit::kTrips,
                 [](const Trips& t) { return t.inserts_by_kind.plain_trips(); }},
    Claim<Trips>{"insert, no merges, segments met for the first time", kNotGiven, Rule::Reported(),
                 Unit::kTrips, [](const Trips& t) { return t.unmerged.insert.end_to_end; }},
    Claim<Trips>{"put of a key that is there", kNotGiven, Rule::Reported(), Unit::kTrips,
                 [](const Trips& t) { return t.from_empty.put.end_to_end; }},
    Claim<Trips>{"search", 2.2, Rule::AtMost(2.25), Unit::kTrips,
                 [](const Trips& t) { return t.from_empty.search.end_to_end; }},
    Claim<Trips>{"search of an absent key", kNotGiven, Rule::Reported(), Unit::kTrips,
                 [](const Trips& t) { return t.from_empty.absent.end_to_end; }},
    Claim<Trips>{"update", kNotGiven, Rule::Reported(), Unit::kTrips,
                 [](const Trips& t) { return t.from_empty.update.end_to_end; }},
    Claim<Trips>{"delete", kNotGiven, Rule::Reported(), Unit::kTrips,
                 [](const Trips& t) { return t.from_empty.erase.end_to_end; }},
    Claim<Trips>{"a merge of new keys", 5, Rule::AtMost(5), Unit::kTrips,
                 [](const Trips& t) { return t.inserts_by_kind.merge_trips(); }},
    Claim<Trips>{"a merge of updates", kNotGiven, Rule::Reported(), Unit::kTrips,
                 [](const Trips& t) { return t.updates_by_kind.merge_trips(); }},
    Claim<Trips>{"a split by the depth bits of entries", 5, Rule::Reported(), Unit::kTrips,
                 [](const Trips& t) { return t.inserts_by_kind.split_trips(); }},
    Claim<Trips>{"insert, 64 clients", kNotGiven, Rule::Reported(), Unit::kTrips,
                 [](const Trips& t) { return InsertTrips(t.inserts); }},
    Claim<Trips>{"insert, 64 clients, retries", kNotGiven, Rule::Reported(), Unit::kNumber,
                 [](const Trips& t) { return RetriesOf(t.inserts); }},
    Claim<Trips>{"insert, 64 clients, failed CAS", kNotGiven, Rule::Reported(), Unit::kNumber,
                 [](const Trips& t) { return FailedCasOf(t.inserts); }},
    Claim<Trips>{"put, 64 clients", kNotGiven, Rule::Reported(), Unit::kTrips,
                 [](const Trips& t) { return InsertTrips(t.puts); }},
    Claim<Trips>{"put, 64 clients, retries", kNotGiven, Rule::Reported(), Unit::kNumber,
                 [](const Trips& t) { return RetriesOf(t.puts); }},
    Claim<Trips>{"put, 64 clients, failed CAS", kNotGiven, Rule::Reported(), Unit::kNumber,
                 [](const Trips& t) { return FailedCasOf(t.puts); }},
};

Result<Report> RunTrips(const Settings& settings) {
  Trips trips;
  TripsPlan plan{.engine = "sephash", .records = settings.Scaled(200'000, 3'000'000, 2000), .puts = true};
  plan.observe = [&trips](std::string_view phase, const fabric::OpTally& tally) {
    if (phase == "inserts") trips.inserts_by_kind.Add(tally);
    if (phase == "updates") trips.updates_by_kind.Add(tally);
    if (phase == "puts") trips.puts_by_kind.Add(tally);
  };
  Result<TripFigures> from_empty = MeasureTrips(plan, settings.progress);
  if (!from_empty.ok()) return from_empty.error();
  trips.from_empty = std::move(*from_empty);

  // Half of the slots are used, at most: no CurSegment is filled.
  TripsPlan unmerged{.engine = "sephash", .records = settings.Scaled(20'000, 200'000, 2000)};
  const uint64_t segments = std::bit_ceil(unmerged.records * 2 / sephash::kMostEntries);
  unmerged.options["segments"] = std::to_string(segments);
  Result<TripFigures> without = MeasureTrips(unmerged, settings.progress);
  if (!without.ok()) return without.error();
  trips.unmerged = std::move(*without);

  const BenchCommand many = SephashOnCluster("load", settings.Scaled(100'000, 3'000'000, 2000), kManyClients);
  Result<BenchRun> inserts = Measure(many, settings);
  if (!inserts.ok()) return inserts.error();
  trips.inserts = std::move(*inserts);
  Result<BenchRun> puts = MeasurePuts(many, settings);
  if (!puts.ok()) return puts.error();
  trips.puts = std::move(*puts);

  Report report;
  report.set_up = fmt::format(
      "{} records, keys and values of 8 bytes, inserted into an empty table; then every record is searched,\n"
      "updated and put, and every second one deleted. One client, counted, not timed; end to end. A merge "
      "and\n"
      "a split: what changes that merge or split take more than others. Without merges: {} records in {}\n"
      "segments. {} clients: {} records into an empty table, with all that merges cost.",
      Grouped(plan.records), Grouped(unmerged.records), Grouped(segments), kManyClients,
      Grouped(many.records));
  report.rows = Compare<Trips>(kTrips, trips);
  report.note = fmt::format(
      "11.56 is what the paper on SHARD counts for an insert of SepHash (its table 3). A merge of updates "
      "reads the\n"
      "blocks of keys that it replaces, to be sure of it. {} clients begin in one segment, and all append "
      "to\n"
      "its first free slot: failed CAS are most of their trips. What binds:\n  inserts   {}\n  puts      {}",
      kManyClients, WhatBinds(trips.inserts), WhatBinds(trips.puts));
  return report;
}

// ---- table 1: merges and splits --------------------------------------------------------------------------

constexpr double kMergesOfPaper = 86.1e4;
constexpr double kSplitsOfPaper = 1.64e4;

struct Resizes {
  uint32_t clients;
  double share_of_paper;    // of the time of inserts
  double retries_of_paper;  // attempts that an insert takes
};
constexpr std::array kResizes = {Resizes{1, 0.035, 1.00}, Resizes{kSephashClients, 0.0101, 6.05}};

// Entries that no round which is over, and none that is not, accounts for.
double Unaccounted(const BenchRun& run) {
  const auto entries = static_cast<double>(sephash::Shape().entries);
  return std::abs(Detail(run.stats, "merges") * entries + Detail(run.stats, "entries of CurSegments") -
                  static_cast<double>(run.records));
}

Status AddResizes(const Resizes& resizes, const BenchCommand& command, const Settings& settings,
                  Report& report) {
  const Result<BenchRun> run = MeasurePuts(command, settings);
  if (!run.ok()) return run.error();
  const std::string name = fmt::format("{} client{}", resizes.clients, resizes.clients == 1 ? "" : "s");
  const double merges = Detail(run->stats, "merges");
  const double splits = Detail(run->stats, "segments") - 1;
  const double time = Detail(run->stats, "seconds in merges by this client");
  report.rows.push_back({name + ", merges and splits of 100 million", kMergesOfPaper + kSplitsOfPaper,
                         PerRecord(merges, *run) * kRecordsOfPaper, Rule::Reported(), Unit::kNumber});
  report.rows.push_back({name + ", of these, splits", kSplitsOfPaper,
                         PerRecord(splits, *run) * kRecordsOfPaper, Rule::Reported(), Unit::kNumber});
  report.rows.push_back({name + ", records that no round accounts for", kNotGiven, Unaccounted(*run),
                         Rule::AtMost(0), Unit::kNumber});
  report.rows.push_back({name + ", share of the time in merges and splits", resizes.share_of_paper,
                         time / run->run->seconds(), Rule::Reported(), Unit::kShare});
  report.rows.push_back({name + ", attempts of an insert", resizes.retries_of_paper, 1 + RetriesOf(*run),
                         Rule::Reported(), Unit::kNumber});
  report.rows.push_back({name + ", merges that another client was faster with", kNotGiven, LostMerges(*run),
                         Rule::Reported(), Unit::kShare});
  report.rows.push_back(
      {name + ", inserts", kNotGiven, OpsPerSecond(*run->run), Rule::Reported(), Unit::kOpsPerSecond});
  report.note += fmt::format("\n  {:<14}{}", name, WhatBinds(*run));
  return OkStatus();
}

Result<Report> RunTable1(const Settings& settings) {
  const uint64_t records = settings.Scaled(600'000, 10'000'000, 4000);
  Report report;
  report.set_up = fmt::format(
      "{} records put into an empty table, on a simulated cluster with one memory node; times are virtual.\n"
      "Merges and splits are counted by the MainSegments themselves, and stand here by proportion; a split "
      "is\n"
      "a merge too. The time in them and the merges in vain are those of one of the clients.",
      Grouped(records));
  report.note =
      "Ours merge when 126 entries are full, the paper's when 113 are or so: that makes fewer merges. A\n"
      "MainSegment has 64 times as many entries in both. 128 clients begin in one segment: until it has "
      "been\n"
      "split a few times, most attempts fail. What binds:";
  for (const Resizes& resizes : kResizes) {
    const BenchCommand command = SephashOnCluster("load", records, resizes.clients);
    if (Status added = AddResizes(resizes, command, settings, report); !added.ok()) return added.error();
  }
  return report;
}

// ---- table 2: space --------------------------------------------------------------------------------------

double SpaceOfCurSegment() {
  const sephash::Shape shape;
  return static_cast<double>(shape.entries * sizeof(sephash::Entry)) /
         static_cast<double>(shape.segment_bytes());
}

double SlotsOf(const BenchRun& run) {
  return Detail(run.stats, "segment bytes as allocated") / sizeof(sephash::Entry);
}

// Beside entries: headers, and the filter.
double BucketMetadata(const BenchRun& run) {
  constexpr double kBytes = sizeof(sephash::SegmentHeader) + sephash::kStartsOffset;
  return Detail(run.stats, "segments") * kBytes;
}

double DirectoryMetadata(const BenchRun& run) {
  constexpr double kBytes = sephash::Shape().HeadBytes(0) - sephash::kStartsOffset;
  return Detail(run.stats, "directory bytes") + Detail(run.stats, "segments") * kBytes;
}

constexpr std::array kTable2 = {
    Claim<BenchRun>{"entry slots of a record, as allocated", 1.01, Rule::AtMost(1.10), Unit::kTimes,
                    [](const BenchRun& run) { return PerRecord(static_cast<double>(run.stats.slots), run); }},
    Claim<BenchRun>{"the same, with heads, filters and FPTables", kNotGiven, Rule::Reported(), Unit::kTimes,
                    [](const BenchRun& run) { return PerRecord(SlotsOf(run), run); }},
    Claim<BenchRun>{"space of a CurSegment that is entries", 0.883, Rule::AtLeast(0.883), Unit::kShare,
                    [](const BenchRun&) { return SpaceOfCurSegment(); }},
    Claim<BenchRun>{"depth of the directory", 14, Rule::Reported(), Unit::kNumber,
                    [](const BenchRun& run) { return Detail(run.stats, "depth"); }},
    Claim<BenchRun>{
        "headers and filters of 100 million", 2.37e6, Rule::Reported(), Unit::kBytes,
        [](const BenchRun& run) { return PerRecord(BucketMetadata(run), run) * kRecordsOfPaper; }},
    Claim<BenchRun>{
        "directory and FPTables of 100 million", 2.96e6, Rule::Reported(), Unit::kBytes,
        [](const BenchRun& run) { return PerRecord(DirectoryMetadata(run), run) * kRecordsOfPaper; }},
    Claim<BenchRun>{"all of the index, of 100 million", 0.85e9, Rule::Reported(), Unit::kBytes,
                    [](const BenchRun& run) {
                      const double bytes = Detail(run.stats, "segment bytes as allocated") +
                                           Detail(run.stats, "directory bytes");
                      return PerRecord(bytes, run) * kRecordsOfPaper;
                    }},
    Claim<BenchRun>{
        "far memory of a record, block", kNotGiven, Rule::Reported(), Unit::kBytes,
        [](const BenchRun& run) { return PerRecord(static_cast<double>(run.memory.block_bytes), run); }},
};

Result<Report> RunTable2(const Settings& settings) {
  const uint64_t records = settings.Scaled(1'000'000, 10'000'000, 8000);
  const Result<BenchRun> run = Measure(SephashOf("load", records), settings);
  if (!run.ok()) return run.error();
  Report report;
  report.set_up = fmt::format(
      "{} records, inserted into an empty table by one client. As allocated: all of CurSegments and\n"
      "MainSegments, as the pool rounds them up, divided by the 8 bytes of an entry. By proportion to the\n"
      "paper's 100 million, where it says so.",
      Grouped(records));
  report.rows = Compare<BenchRun>(kTable2, *run);
  report.note =
      "The paper counts entries, and nothing beside. Its filter is a bit for each fingerprint, ours a byte:\n"
      "that makes 320 bytes of a segment instead of 32. Its FPTable is kept by clients alone; ours stands "
      "in\n"
      "the MainSegment too, so that a client need not read the entries to make one. The last "
      "page\n"
      "of a MainSegment has slots that are not used.";
  return report;
}

// ---- table 3: FPTables of clients ------------------------------------------------------------------------

struct Remembered {
  uint32_t main;
  double naive;  // bytes, of 100 million records
  double points;
};
constexpr std::array kRemembered = {
    Remembered{64, 9e6, 2.68e6},
    Remembered{32, 18e6, 5.36e6},
    Remembered{16, 36e6, 10.8e6},
    Remembered{8, 73e6, 22e6},
};

Result<Report> RunTable3(const Settings& settings) {
  const uint64_t records = settings.Scaled(300'000, 3'000'000, 8000);
  Report report;
  for (const Remembered& remembered : kRemembered) {
    BenchCommand command = SephashOf("load", records);
    command.options["main"] = std::to_string(remembered.main);
    const Result<BenchRun> run = Measure(command, settings);
    if (!run.ok()) return run.error();
    const double naive = Detail(run->stats, "naive FPTable bytes");
    const double points = Detail(run->stats, "record point FPTable bytes");
    const std::string name = fmt::format("main {}", remembered.main);
    report.rows.push_back({name + ", saved by record points", 1 - remembered.points / remembered.naive,
                           1 - points / naive, Rule::AtLeast(0.67), Unit::kShare});
    report.rows.push_back({name + ", naive, of 100 million", remembered.naive,
                           PerRecord(naive, *run) * kRecordsOfPaper, Rule::Reported(), Unit::kBytes});
    report.rows.push_back({name + ", record points, of 100 million", remembered.points,
                           PerRecord(points, *run) * kRecordsOfPaper, Rule::Reported(), Unit::kBytes});
  }
  report.set_up = fmt::format(
      "{} records, inserted by one client; what the FPTables of all MainSegments take in a client that "
      "knows\n"
      "them all, in either form, the object itself counted. By proportion to the paper's 100 million.",
      Grouped(records));
  report.note = "Naive: two bytes for each of 256 fingerprints. Record points: two bytes for each point.";
  return report;
}

// ---- figure 18: utilisation ------------------------------------------------------------------------------

constexpr uint64_t kSteps = 9;

Result<Report> RunFigure18(const Settings& settings) {
  const uint64_t first = settings.Scaled(10'000, 10'000, 1000);
  Report report;
  std::array<Plot, 2> plots;
  plots[0].title = "entries that are used, by records";
  plots[1].title = "space that is entries in use, as allocated, by records";
  for (uint64_t step = 0; step < kSteps; ++step) {
    // In steps of the square root of two, so that they meet tables before and behind their splits.
    const auto records = static_cast<uint64_t>(
        std::llround(std::pow(2, static_cast<double>(step) / 2) * static_cast<double>(first)));
    const Result<BenchRun> run = Measure(SephashOf("load", records), settings);
    if (!run.ok()) return run.error();
    const std::array shares = {Detail(run->stats, "load"), static_cast<double>(run->records) / SlotsOf(*run)};
    const std::array<std::string_view, 2> names = {"entries in use", "space in use"};
    for (size_t i = 0; i < plots.size(); ++i) {
      report.rows.push_back({fmt::format("{} records, {}", Grouped(records), names[i]), kNotGiven, shares[i],
                             Rule::Reported(), Unit::kShare});
      plots[i].columns.insert(plots[i].columns.end(), kPlotWidth / kSteps, 100 * shares[i]);
      plots[i].y_unit = "%";
      if (step == 0) plots[i].x_begin = Grouped(records);
      plots[i].x_end = Grouped(records);
    }
  }
  for (Plot& plot : plots) report.plots.push_back(std::move(plot));
  report.set_up =
      "One client, from an empty table each time; slots of CurSegments that are free count as not used. "
      "Space\n"
      "is all of CurSegments and MainSegments as the pool rounds them up.";
  report.note =
      "The paper says that both are above 90 %, from 10,000 records on. A MainSegment has only entries that\n"
      "are used.";
  return report;
}

// ---- how even inserts are --------------------------------------------------------------------------------

constexpr Nanos kWindow = std::chrono::milliseconds(1);
constexpr size_t kWindowsOfClaim = 10;
constexpr uint64_t kDoublings = 5;  // that a run passes through, at least
constexpr uint64_t kSegments = 128;

struct Growing {
  std::string_view what;
  uint64_t segments;  // at the begin
  uint64_t share;     // of the records
  Rule rule;
};
constexpr std::array kGrowings = {
    Growing{"from 128 segments", kSegments, 1, Rule::AtLeast(0.5)},
    Growing{"from 1 segment", 1, 4, Rule::Reported()},
};

Status AddGrowing(const Growing& growing, const Settings& settings, Report& report) {
  // Segments of the usual size would take 30 million records.
  const sephash::Shape shape = settings.full ? sephash::Shape() : sephash::Shape{.entries = 62, .main = 8};
  // So that every segment has been split five times, and is between half full and full.
  const uint64_t goal = (kSegments << kDoublings) * shape.most_main_entries() * 3 / 4 / growing.share;
  const uint64_t records = settings.Scaled(goal, goal, 4000);
  BenchCommand command = SephashOnCluster("load", records, kSephashClients);
  command.options = {{"segments", std::to_string(growing.segments)},
                     {"entries", std::to_string(shape.entries)},
                     {"main", std::to_string(shape.main)}};
  const Result<BenchRun> run = MeasurePuts(command, settings, kWindow);
  if (!run.ok()) return run.error();
  const Evenness evenness = MeasureEvenness(run->run->windows, kWindow, kWindowsOfClaim);
  const std::string name(growing.what);
  const double doublings = Detail(run->stats, "depth") - std::log2(static_cast<double>(growing.segments));
  report.rows.push_back({name + ", slowest 10 ms, of the steady rate", kNotGiven, evenness.share(),
                         growing.rule, Unit::kShare});
  report.rows.push_back({name + ", doublings", kNotGiven, doublings,
                         growing.rule.promises() ? Rule::AtLeast(kDoublings) : Rule::Reported(),
                         Unit::kNumber});
  report.rows.push_back(
      {name + ", steady rate", kNotGiven, evenness.steady, Rule::Reported(), Unit::kOpsPerSecond});
  report.rows.push_back(
      {name + ", over all", kNotGiven, OpsPerSecond(*run->run), Rule::Reported(), Unit::kOpsPerSecond});
  report.rows.push_back(
      {name + ", trips of an insert", kNotGiven, InsertTrips(*run), Rule::Reported(), Unit::kTrips});
  Plot plot =
      PlotOf(*run->run, kWindow,
             fmt::format("{}: {} inserts by {} clients, to {} segments", name, Grouped(records),
                         kSephashClients, Grouped(static_cast<uint64_t>(Detail(run->stats, "segments")))));
  plot.legend = "^ a client knows of segments that are one bit deeper";
  report.plots.push_back(std::move(plot));
  report.rows.push_back({name + ", merges that another client was faster with", kNotGiven, LostMerges(*run),
                         Rule::Reported(), Unit::kShare});
  report.rows.push_back(
      {name + ", failed CAS of an insert", kNotGiven, FailedCasOf(*run), Rule::Reported(), Unit::kNumber});
  report.note += fmt::format("\n  {:<20}{}", name, WhatBinds(*run));
  return OkStatus();
}

Result<Report> RunEven(const Settings& settings) {
  Report report;
  report.set_up =
      "Inserts only (puts), on a simulated cluster with one memory node; times are virtual. The steady rate "
      "is\n"
      "what one in ten stretches of 10 ms exceeds; the slowest is the slowest of all, wherever it begins.\n"
      "CurSegments of 62 entries and MainSegments of 8 of them, so that a short run splits often; with "
      "--full\n"
      "126 and 64.";
  report.note =
      "Keys divide evenly, so that all segments of a depth are full, and split, at nearly the same time: "
      "the\n"
      "slowest stretches are those. What binds:";
  for (const Growing& growing : kGrowings) {
    if (Status added = AddGrowing(growing, settings, report); !added.ok()) return added.error();
  }
  return report;
}

constexpr std::array kExperiments = {
    Experiment{"sephash-trips", "round trips per operation (SepHash, sections 4.2 and 4.3)", RunTrips},
    Experiment{"sephash-table1", "merges and splits (SepHash, table 1)", RunTable1},
    Experiment{"sephash-table2", "space in far memory (SepHash, table 2)", RunTable2},
    Experiment{"sephash-table3", "what a client remembers (SepHash, table 3)", RunTable3},
    Experiment{"sephash-figure13", "latency of inserts (SepHash, figure 13)", RunSephashFigure13},
    Experiment{"sephash-figure16", "latency of searches (SepHash, figure 16)", RunSephashFigure16},
    Experiment{"sephash-figure18", "utilisation as a table grows (SepHash, figure 18)", RunFigure18},
    Experiment{"sephash-figure19", "techniques one by one (SepHash, figure 19)", RunSephashFigure19},
    Experiment{"sephash-figure20", "sizes of segments (SepHash, figure 20)", RunSephashFigure20},
    Experiment{"sephash-figure21", "memory nodes (SepHash, figure 21)", RunSephashFigure21},
    Experiment{"sephash-figure22", "sizes of records (SepHash, figure 22)", RunSephashFigure22},
    Experiment{"sephash-even", "throughput of inserts through splits", RunEven},
};

}  // namespace

std::span<const Experiment> SephashExperiments() { return kExperiments; }

BenchCommand SephashOf(std::string_view workload, uint64_t records) {
  BenchCommand command;
  command.engine = "sephash";
  command.workload = workload;
  command.records = records;
  return command;
}

BenchCommand SephashOnCluster(std::string_view workload, uint64_t records, uint32_t clients) {
  BenchCommand command = SephashOf(workload, records);
  command.fabric = "sim";
  command.distribution = workload == "load" ? "" : "uniform";
  command.clients = clients;
  command.compute_nodes = std::max(clients / kClientsPerMachine, 1u);
  command.key_size = 16;
  command.value_size = 32;
  return command;
}

Result<BenchRun> MeasurePuts(const BenchCommand& command, const Settings& settings, Nanos window) {
  Result<BenchPlan> plan = PlanBench(command);
  if (!plan.ok()) return plan.error();
  plan->window = window;
  plan->puts = true;
  return Measure(*plan, settings);
}

}  // namespace farside::tools::paper
