// Flushes, lookups and loads of the continuity table.
#include "tools/paper/continuity.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/random.h"
#include "fabric/op.h"
#include "index/continuity/layout.h"
#include "pool/memory/block.h"
#include "tools/common/output.h"
#include "tools/paper/continuity_model.h"
#include "tools/paper/lone_table.h"
#include "tools/paper/trips.h"
#include "workload/records.h"

namespace farside::tools::paper {
namespace {

using fabric::FarAddr;
using fabric::FlushCounts;
using fabric::Op;
using fabric::OpKind;

constexpr std::optional<double> kNotGiven;
constexpr uint64_t kOperationsPerLook = 32;
constexpr uint64_t kRecordsPerEmptyPair = 4;  // of 20 slots: no pair is ever full

double Per(uint64_t sum, uint64_t count) {
  return static_cast<double>(sum) / static_cast<double>(std::max<uint64_t>(count, 1));
}

// A continuity table and its only client, with keys and values of one size.
class Lone {
 public:
  static Result<Lone> Make(uint64_t pairs, uint32_t every, uint64_t records, size_t key_size,
                           size_t value_size) {
    Result<std::unique_ptr<LoneTable>> table = LoneTable::Make(
        "continuity", {{"pairs", std::to_string(pairs)}, {"group_every", std::to_string(every)}},
        records * (1 + value_size / 256));
    if (!table.ok()) return table.error();
    return Lone(std::move(*table), key_size, value_size);
  }

  LoneTable& table() { return *table_; }

  Status Insert(uint64_t record) { return Run(&Lone::TryInsert, record); }
  Status Update(uint64_t record) { return Run(&Lone::TryUpdate, record); }
  Status Delete(uint64_t record) { return Run(&Lone::TryDelete, record); }

  Result<index::continuity::Root> ReadRoot() { return table_->Run(Read<index::continuity::Root>(0)); }
  // How many pairs of this table have a group.
  Result<uint64_t> ReadGroups(index::continuity::TableWord table) {
    return table_->Run(ReadAt<uint64_t>(FarAddr(table_->info().roots.front().node, table.offset())));
  }

 private:
  Lone(std::unique_ptr<LoneTable> table, size_t key_size, size_t value_size)
      : table_(std::move(table)), key_(key_size, '\0'), value_(value_size, '\0') {}

  Status Run(Task<bool> (Lone::*step)(), uint64_t record) {
    workload::FillKey(record, key_);
    workload::FillValue(key_, version_++, value_);
    const Result<bool> done = table_->Run((this->*step)());
    if (!done.ok()) return done.error();
    if (!*done)
      return Error(ErrorCode::kCorrupt, fmt::format("continuity: record {} is not as it must be", record));
    return version_ % kOperationsPerLook == 0 ? table_->Maintain() : OkStatus();
  }
  Task<bool> TryInsert() {
    Op op(table_->client(), OpKind::kInsert);
    const bool inserted = co_await table_->index().Insert(op, key_, value_);
    co_return inserted;
  }
  Task<bool> TryUpdate() {
    Op op(table_->client(), OpKind::kUpdate);
    const bool updated = co_await table_->index().Update(op, key_, value_);
    co_return updated;
  }
  Task<bool> TryDelete() {
    Op op(table_->client(), OpKind::kDelete);
    const bool deleted = co_await table_->index().Delete(op, key_);
    co_return deleted;
  }
  template <class T>
  Task<T> Read(uint64_t offset) {
    return ReadAt<T>(table_->info().roots.front() + offset);
  }
  template <class T>
  Task<T> ReadAt(FarAddr at) {
    Op op(table_->client(), OpKind::kMaintenance);
    const T read = co_await op.InOrder(fabric::Read<T>(at));
    co_return read;
  }

  std::unique_ptr<LoneTable> table_;
  std::string key_;
  std::string value_;
  uint32_t version_ = 0;
};

// ---- table 1: lines made durable -------------------------------------------------------------------------

struct Flushed {
  FlushCounts insert;
  FlushCounts update;
  FlushCounts erase;
};

// Every record once, by each of the three.
Result<Flushed> MeasureFlushes(Lone& lone, uint64_t records) {
  Flushed flushed;
  for (auto [step, counts] :
       {std::pair{&Lone::Insert, &flushed.insert}, std::pair{&Lone::Update, &flushed.update},
        std::pair{&Lone::Delete, &flushed.erase}}) {
    const FlushCounts before = lone.table().flushed();
    for (uint64_t record = 0; record < records; ++record) {
      if (Status done = (lone.*step)(record); !done.ok()) return done.error();
    }
    *counts = lone.table().flushed() - before;
  }
  return flushed;
}

struct Sizes {
  std::string_view what;
  size_t key;
  size_t value;
};
// The paper's records have 16 and up to 15 bytes.
constexpr Sizes kOfPaper{"16 + 15 B", 16, 15};
constexpr std::array kInBlocks = {Sizes{"16 + 16 B", 16, 16}, Sizes{"16 + 64 B", 16, 64},
                                  Sizes{"16 + 1000 B", 16, 1000}};

void AddExactly(std::string metric, std::optional<double> paper, double ours, double exact, Unit unit,
                Report& report) {
  report.rows.push_back({metric, paper, ours, Rule::AtMost(exact), unit});
  report.rows.push_back({metric + ", not fewer", paper, ours, Rule::AtLeast(exact), unit});
}

Status AddSlotFlushes(const Sizes& sizes, uint64_t records, Report& report) {
  Result<Lone> lone = Lone::Make(records / kRecordsPerEmptyPair, 0, records, sizes.key, sizes.value);
  if (!lone.ok()) return lone.error();
  const Result<Flushed> flushed = MeasureFlushes(*lone, records);
  if (!flushed.ok()) return flushed.error();
  for (const auto& [what, counts, paper] :
       {std::tuple{"insert", &flushed->insert, 2.0}, std::tuple{"update", &flushed->update, 2.0},
        std::tuple{"delete", &flushed->erase, 1.0}}) {
    AddExactly(fmt::format("{}, lines flushed", what), paper, Per(counts->lines, records), paper,
               Unit::kNumber, report);
    report.rows.push_back({fmt::format("{}, drains", what), kNotGiven, Per(counts->drains, records),
                           Rule::Reported(), Unit::kNumber});
  }
  return OkStatus();
}

Status AddBlockFlushes(const Sizes& sizes, uint64_t records, Report& report) {
  Result<Lone> lone = Lone::Make(records / kRecordsPerEmptyPair, 0, records, sizes.key, sizes.value);
  if (!lone.ok()) return lone.error();
  const Result<Flushed> flushed = MeasureFlushes(*lone, records);
  if (!flushed.ok()) return flushed.error();
  const uint64_t lines = pool::BlockBytes(sizes.key, sizes.value) / pool::kLine;
  report.rows.push_back({fmt::format("{}, lines of the block", sizes.what), kNotGiven,
                         static_cast<double>(lines), Rule::Reported(), Unit::kNumber});
  for (const auto& [what, counts, without] :
       {std::tuple{"insert", &flushed->insert, 2 + lines}, std::tuple{"update", &flushed->update, 2 + lines},
        std::tuple{"delete", &flushed->erase, uint64_t{1}}}) {
    report.rows.push_back({fmt::format("{}, {}", sizes.what, what), kNotGiven, Per(counts->lines, records),
                           Rule::AtMost(static_cast<double>(without)), Unit::kNumber});
  }
  return OkStatus();
}

// With groups and growth: what an insert flushes on average while a table is filled from the smallest on.
Status AddFilling(uint64_t records, Report& report) {
  Result<Lone> lone = Lone::Make(64, 10, records, kOfPaper.key, kOfPaper.value);
  if (!lone.ok()) return lone.error();
  const FlushCounts before = lone->table().flushed();
  for (uint64_t record = 0; record < records; ++record) {
    if (Status done = lone->Insert(record); !done.ok()) return done;
  }
  const FlushCounts counts = lone->table().flushed() - before;
  report.rows.push_back({"insert, with groups and growth from 64 pairs on", kNotGiven,
                         Per(counts.lines, records), Rule::Reported(), Unit::kNumber});
  report.rows.push_back({"insert, with groups and growth, drains", kNotGiven, Per(counts.drains, records),
                         Rule::Reported(), Unit::kNumber});
  return OkStatus();
}

Result<Report> RunTable1(const Settings& settings) {
  const uint64_t records = settings.Scaled(20'000, 1'000'000, 500);
  const uint64_t in_blocks = settings.Scaled(2000, 20'000, 100);
  Report report;
  if (Status added = AddSlotFlushes(kOfPaper, records, report); !added.ok()) return added.error();
  for (const Sizes& sizes : kInBlocks) {
    if (Status added = AddBlockFlushes(sizes, in_blocks, report); !added.ok()) return added.error();
  }
  if (Status added = AddFilling(records, report); !added.ok()) return added.error();
  report.set_up = fmt::format(
      "One client. {} records with keys of 16 and values of 15 bytes are inserted, updated and deleted,\n"
      "in a table with room for all of them; then {} of each larger size, which stand in blocks; then a\n"
      "table that begins with 64 pairs is filled with as many small ones. Counted are the lines that the\n"
      "node's handlers make durable, for each operation.",
      Grouped(records), Grouped(in_blocks));
  report.note =
      "The lines are those of the slot and of the indicator, and of the block where there is one. The\n"
      "paper counts instructions that flush a line, for records in slots alone. Growth flushes every\n"
      "record that it copies: its share is in the row with growth, and the paper's figures leave it out.";
  return report;
}

// ---- lookups ---------------------------------------------------------------------------------------------

double VerbsOf(const KindTrips& kind) { return Per(kind.tally.Verbs(), kind.operations); }

double BytesOf(const KindTrips& kind) {
  uint64_t bytes = 0;
  for (const fabric::Purpose purpose : {fabric::Purpose::kIndex, fabric::Purpose::kBlock})
    bytes += kind.tally.by_purpose[static_cast<size_t>(purpose)].bytes_read;
  return Per(bytes, kind.operations);
}

constexpr double kReads = 3;
constexpr double kBytes = index::continuity::kSegmentBytes + 16;  // and the indicator twice

void AddExactLookup(std::string_view what, const KindTrips& kind, Report& report) {
  AddExactly(fmt::format("{}, trips", what), 1, kind.end_to_end, 1, Unit::kTrips, report);
  AddExactly(fmt::format("{}, READs", what), kNotGiven, VerbsOf(kind), kReads, Unit::kNumber, report);
  AddExactly(fmt::format("{}, bytes", what), kNotGiven, BytesOf(kind), kBytes, Unit::kBytes, report);
}

void AddLookup(std::string_view what, const KindTrips& kind, Rule rule, Report& report) {
  report.rows.push_back({fmt::format("{}, trips", what), 1.1, kind.end_to_end, rule, Unit::kTrips});
  report.rows.push_back(
      {fmt::format("{}, READs", what), kNotGiven, VerbsOf(kind), Rule::Reported(), Unit::kNumber});
  report.rows.push_back(
      {fmt::format("{}, bytes", what), kNotGiven, BytesOf(kind), Rule::Reported(), Unit::kBytes});
}

// How many of the records 0, 1, ... a table takes before it grows.
FullTable UntilFull(uint64_t pairs, uint32_t every) {
  ContinuityModel model(pairs, every, false);
  std::string key(8, '\0');
  for (uint64_t record = 0;; ++record) {
    workload::FillKey(record, key);
    if (!model.Insert(Hash64(AsBytes(key)))) return model.now();
  }
}

Result<Report> RunLookup(const Settings& settings) {
  const uint64_t pairs = settings.Scaled(5000, 50'000, 100);
  TripsPlan plan{.engine = "continuity",
                 .options = {{"pairs", std::to_string(pairs)}, {"group_every", "0"}},
                 .records = pairs * kRecordsPerEmptyPair};
  const Result<TripFigures> plain = MeasureTrips(plan, settings.progress);
  if (!plain.ok()) return plain.error();
  const FullTable full = UntilFull(pairs, 10);
  plan.options["group_every"] = "10";
  plan.records = full.records;
  const Result<TripFigures> extended = MeasureTrips(plan, settings.progress);
  if (!extended.ok()) return extended.error();
  Report report;
  AddExactLookup("lookup", plain->search, report);
  AddExactLookup("lookup of an absent key", plain->absent, report);
  const double groups = Per(full.groups, pairs);
  report.rows.push_back(
      {"pairs with a group, just before growth", 0.1, groups, Rule::Reported(), Unit::kShare});
  report.rows.push_back({"pairs of the real table, and of the model", kNotGiven,
                         static_cast<double>(extended->loaded.slots / index::continuity::kFirstGroup) -
                             static_cast<double>(pairs),
                         Rule::AtMost(0), Unit::kNumber});
  AddLookup("lookup with groups", extended->search, Rule::AtMost(1.10), report);
  AddLookup("lookup of an absent key with groups", extended->absent, Rule::Reported(), report);
  report.set_up = fmt::format(
      "One client, {} pairs without groups and {} records: every record is looked up, and as many keys\n"
      "that are not there. Then as many pairs, of which one in ten may have a group, with the {} records\n"
      "that fit before the table has to grow.",
      Grouped(pairs), Grouped(pairs * kRecordsPerEmptyPair), Grouped(full.records));
  report.note =
      "A lookup READs the indicator, the segment and the indicator again, in one trip. If slots of the\n"
      "group count, and the key is not in the segment, it READs the group by another. The paper has one\n"
      "READ of 544 bytes and less, which may be torn. An absent key meets a group as often as pairs have\n"
      "one: 1.10 is then the expected figure, and what is measured lies to either side of it.";
  return report;
}

// ---- figure 18: loads ------------------------------------------------------------------------------------

constexpr uint64_t kFirstPairs = 10;  // 20 buckets
constexpr size_t kDoublings = 10;
constexpr uint64_t kSeeds = 100;
constexpr uint32_t kRuleEvery = 10;
constexpr double kLeastLoad = 0.70;
constexpr double kLeastLarge = 0.60;
constexpr uint64_t kLargePairs = 500'000;  // 10^6 buckets

struct Extension {
  uint32_t every;
  std::string_view what;
  std::optional<double> paper;
};
constexpr std::array kExtensions = {Extension{0, "no groups", kNotGiven}, Extension{20, "1/20", 0.70},
                                    Extension{10, "1/10", 0.70}};

// The records of a seed are numbered apart from those of others.
constexpr uint64_t FirstRecord(uint64_t seed) { return seed << 32; }

Status OneTableByModel(uint64_t seed, uint32_t every, size_t doublings, std::vector<FullTable>& growths) {
  ContinuityModel model(kFirstPairs, every, true);
  std::string key(8, '\0');
  for (uint64_t record = FirstRecord(seed); model.growths().size() < doublings; ++record) {
    workload::FillKey(record, key);
    model.Insert(Hash64(AsBytes(key)));
  }
  growths = model.growths();
  return OkStatus();
}

// The same by the engine, on simulated far memory.
Status OneTable(uint64_t seed, uint32_t every, size_t doublings, std::vector<FullTable>& growths) {
  constexpr size_t kSlotsOfPair = index::continuity::kFirstGroup;
  Result<Lone> lone = Lone::Make(kFirstPairs, every, (kFirstPairs * kSlotsOfPair) << doublings, 8, 8);
  if (!lone.ok()) return lone.error();
  const fabric::OpTally& tally =
      lone->table().client().counters().at(OpKind::kInsert, fabric::OpOutcome::kDone);
  for (uint64_t records = 0; growths.size() < doublings; ++records) {
    const uint64_t trips = tally.end_to_end_trips;
    if (Status done = lone->Insert(FirstRecord(seed) + records); !done.ok()) return done;
    // One that begins growth takes a Call that finds no place, one that brings a table, and one that puts it.
    if (tally.end_to_end_trips - trips < 3) continue;
    const Result<index::continuity::Root> root = lone->ReadRoot();
    if (!root.ok()) return root.error();
    if (!root->growing() || root->current.doublings() != growths.size()) continue;
    const Result<uint64_t> groups = lone->ReadGroups(root->current);
    if (!groups.ok()) return groups.error();
    growths.push_back({.records = records,
                       .pairs = index::continuity::PairsOf(root->shape, root->current.doublings()),
                       .groups = *groups});
  }
  return OkStatus();
}

struct Loads {
  std::array<double, kDoublings> at{};           // slots of groups counted
  std::array<double, kDoublings> of_pairs_at{};  // and not counted
  double mean = 0;
  double of_pairs = 0;
};

Loads MeanOf(const std::vector<std::vector<FullTable>>& tables) {
  Loads loads;
  for (const std::vector<FullTable>& growths : tables) {
    for (size_t i = 0; i < kDoublings; ++i) {
      loads.at[i] += growths[i].load() / static_cast<double>(tables.size());
      loads.of_pairs_at[i] += growths[i].load_of_pairs() / static_cast<double>(tables.size());
    }
  }
  for (size_t i = 0; i < kDoublings; ++i) {
    loads.mean += loads.at[i] / kDoublings;
    loads.of_pairs += loads.of_pairs_at[i] / kDoublings;
  }
  return loads;
}

void AddLoads(const Extension& extension, std::string_view by, const Loads& loads, Report& report) {
  const bool is_claim = extension.every == kRuleEvery;
  const auto add = [&](std::string_view what, std::optional<double> paper, double ours, Rule rule) {
    report.rows.push_back(
        {fmt::format("{}, {}{}", extension.what, by, what), paper, ours, rule, Unit::kShare});
  };
  add("mean load", extension.paper, loads.mean, is_claim ? Rule::AtLeast(kLeastLoad) : Rule::Reported());
  if (extension.every != 0)
    add("mean, groups not counted", extension.paper, loads.of_pairs, Rule::Reported());
}

Status AddExtension(const Extension& extension, uint64_t real_seeds, const Settings& settings,
                    Report& report) {
  std::vector<std::vector<FullTable>> by_model;
  std::vector<std::vector<FullTable>> real;
  uint64_t differ = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    settings.progress("continuity loads", seed, kSeeds, "tables");
    if (Status done = OneTableByModel(seed, extension.every, kDoublings, by_model.emplace_back()); !done.ok())
      return done;
    if (seed > real_seeds) continue;
    if (Status done = OneTable(seed, extension.every, kDoublings, real.emplace_back()); !done.ok())
      return done;
    for (size_t i = 0; i < kDoublings; ++i) {
      if (real.back()[i] != by_model.back()[i]) ++differ;
    }
  }
  const Loads loads = MeanOf(real);
  AddLoads(extension, "", loads, report);
  AddLoads(extension, "model, ", MeanOf(by_model), report);
  for (size_t i = 0; i < kDoublings; ++i) {
    report.rows.push_back({fmt::format("{}, doubling {}", extension.what, i + 1), kNotGiven, loads.at[i],
                           Rule::Reported(), Unit::kShare});
  }
  report.rows.push_back({fmt::format("{}, doublings at which table and model differ", extension.what),
                         kNotGiven, static_cast<double>(differ), Rule::AtMost(0), Unit::kNumber});
  return OkStatus();
}

// The law with size: a table that may not grow, by the model, filled until a key finds no place.
void AddLaw(uint64_t largest, uint64_t tables, const Settings& settings, Report& report) {
  for (const Extension& extension : kExtensions) {
    for (uint64_t pairs = largest / 1000; pairs <= largest; pairs *= 10) {
      double load = 0;
      double of_pairs = 0;
      for (uint64_t seed = 1; seed <= tables; ++seed) {
        settings.progress("continuity loads of large tables", seed, tables, "tables");
        Random random(seed);
        ContinuityModel model(pairs, extension.every, false);
        while (model.Insert(random.Next())) {
        }
        load += model.now().load() / static_cast<double>(tables);
        of_pairs += model.now().load_of_pairs() / static_cast<double>(tables);
      }
      const bool is_claim = extension.every == kRuleEvery && pairs == largest;
      const std::string name = fmt::format("{}, {} buckets (model)", extension.what, Grouped(2 * pairs));
      report.rows.push_back(
          {name, kNotGiven, load, is_claim ? Rule::AtLeast(kLeastLarge) : Rule::Reported(), Unit::kShare});
      if (extension.every == 0) continue;
      report.rows.push_back(
          {name + ", groups not counted", kNotGiven, of_pairs, Rule::Reported(), Unit::kShare});
    }
  }
}

Result<Report> RunFigure18(const Settings& settings) {
  const uint64_t seeds = settings.full ? kSeeds : settings.Scaled(4, kSeeds, 1);
  const uint64_t largest = settings.Scaled(kLargePairs, kLargePairs, 5000);
  const uint64_t tables = settings.Scaled(4, 20, 1);
  Report report;
  for (const Extension& extension : kExtensions) {
    if (Status added = AddExtension(extension, seeds, settings, report); !added.ok()) return added.error();
  }
  AddLaw(largest, tables, settings, report);
  report.set_up = fmt::format(
      "A table of 20 buckets (10 pairs) is filled by inserts through {} doublings: the load whenever it\n"
      "begins to grow, which is records for each slot, those of groups counted. By the engine: the mean\n"
      "of {} tables with other keys (--full: {}). By the model, a table in local memory with the same\n"
      "rules: the mean of {} tables, those of the engine among them. Then tables that may not grow, by\n"
      "the model, until a key finds no place: the mean of {}.",
      kDoublings, seeds, kSeeds, kSeeds, tables);
  report.note =
      "The paper's text says about 70 % for both shares of extended pairs, and does not say whether slots\n"
      "of groups count; the rule counts them, which is less. The load falls with size, because the table\n"
      "grows for the first key without a place, and the fullest of more pairs is fuller. Without groups\n"
      "one pair is enough; with groups, so many pairs need one that none is left, or, in large tables,\n"
      "one pair has more than its group holds.";
  return report;
}

constexpr std::array kExperiments = {
    Experiment{"continuity-table1", "lines flushed by an operation (continuity hashing, table I)", RunTable1},
    Experiment{"continuity-lookup", "trips, READs and bytes of lookups (continuity hashing, section IV-B)",
               RunLookup},
    Experiment{"continuity-figure18", "loads at which the table doubles (continuity hashing, figure 18)",
               RunFigure18},
};

}  // namespace

std::span<const Experiment> ContinuityExperiments() { return kExperiments; }

}  // namespace farside::tools::paper
