// Trips, migrations and loads of the nessie table.
#include "tools/paper/nessie.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "fabric/op.h"
#include "tools/common/output.h"
#include "tools/paper/cuckoo_model.h"
#include "tools/paper/lone_table.h"
#include "tools/paper/trips.h"
#include "workload/records.h"

namespace farside::tools::paper {
namespace {

constexpr std::optional<double> kNotGiven;
constexpr uint64_t kUsualChain = 32;
constexpr uint64_t kOperationsPerLook = 32;
constexpr uint64_t kMostTriesPerSlot = 64;

// ---- puts of new keys ------------------------------------------------------------------------------------

// A table that does not grow and is filled by puts of new keys. Those that find no place are left out.
class Filled {
 public:
  struct Counts {
    uint64_t placed = 0;
    uint64_t refused = 0;  // found no place
    uint64_t trips = 0;    // of those that were placed: end to end
    uint64_t index_trips = 0;
    uint64_t migrations = 0;  // how many of them took one or more

    double Trips() const { return Per(trips, placed); }
    double IndexTrips() const { return Per(index_trips, placed); }
    double PlacedShare() const { return Per(placed, placed + refused); }
    static double Per(uint64_t sum, uint64_t count) {
      return static_cast<double>(sum) / static_cast<double>(std::max<uint64_t>(count, 1));
    }
  };

  static Result<Filled> Make(uint64_t slots, uint64_t chain, const Settings& settings) {
    Result<std::unique_ptr<LoneTable>> table = LoneTable::Make(
        "nessie", {{"slots", std::to_string(slots)}, {"grow", "no"}, {"chain", std::to_string(chain)}},
        slots);
    if (!table.ok()) return table.error();
    return Filled(std::move(*table), slots, settings);
  }

  double load() const { return static_cast<double>(records_) / static_cast<double>(slots_); }

  // Puts new keys until the table has this load.
  Status FillTo(double load, Counts& counts) {
    const auto goal = static_cast<uint64_t>(std::llround(load * static_cast<double>(slots_)));
    while (records_ < goal) {
      if (next_ > kMostTriesPerSlot * slots_)
        return Error(ErrorCode::kOutOfMemory, fmt::format("no load of {} can be reached", load));
      if (Status put = PutNew(counts); !put.ok()) return put;
      if (next_ % 1024 == 0) settings_->progress("nessie puts", records_, goal, "records");
    }
    return OkStatus();
  }
  // Puts so many new keys at this load, and deletes each of them again.
  Status PutAndDelete(uint64_t puts, Counts& counts) {
    while (counts.placed < puts) {
      const uint64_t before = counts.placed;
      if (Status put = PutNew(counts); !put.ok()) return put;
      if (next_ % 1024 == 0) settings_->progress("nessie puts", counts.placed, puts, "puts");
      if (counts.placed == before) continue;
      const Result<bool> deleted = table_->Run(Delete());
      if (!deleted.ok()) return deleted.error();
      if (!*deleted) return Error(ErrorCode::kCorrupt, "nessie: a key that was put is not there");
      --records_;
    }
    return OkStatus();
  }
  // Puts new keys until one finds no place.
  Status FillUntilRefused() {
    Counts counts;
    while (counts.refused == 0) {
      if (Status put = PutNew(counts); !put.ok()) return put;
      if (next_ % 1024 == 0) settings_->progress("nessie puts", records_, slots_, "records");
    }
    return OkStatus();
  }

 private:
  // A put that migrates takes at least so many trips: it finds both slots taken, reads their items and the
  // slots of these, claims, commits, and puts.
  static constexpr uint64_t kTripsOfMigration = 7;

  Filled(std::unique_ptr<LoneTable> table, uint64_t slots, const Settings& settings)
      : table_(std::move(table)), slots_(slots), settings_(&settings) {}

  Status PutNew(Counts& counts) {
    const fabric::OpTally& tally =
        table_->client().counters().at(fabric::OpKind::kInsert, fabric::OpOutcome::kDone);
    const uint64_t trips = tally.end_to_end_trips;
    const uint64_t index_trips = tally.index_trips;
    workload::FillKey(next_++, key_);
    workload::FillValue(key_, 0, value_);
    const Result<Done> put = table_->Run(Put());
    if (next_ % kOperationsPerLook == 0) {
      if (Status maintained = table_->Maintain(); !maintained.ok()) return maintained;
    }
    if (!put.ok()) {
      if (put.error().code() != ErrorCode::kOutOfMemory) return put.error();
      ++counts.refused;
      return OkStatus();
    }
    ++counts.placed;
    ++records_;
    counts.trips += tally.end_to_end_trips - trips;
    counts.index_trips += tally.index_trips - index_trips;
    if (tally.end_to_end_trips - trips >= kTripsOfMigration) ++counts.migrations;
    return OkStatus();
  }
  Task<Done> Put() {
    fabric::Op op(table_->client(), fabric::OpKind::kInsert);
    co_await table_->index().Put(op, key_, value_);
    co_return Done{};
  }
  Task<bool> Delete() {
    fabric::Op op(table_->client(), fabric::OpKind::kDelete);
    const bool deleted = co_await table_->index().Delete(op, key_);
    co_return deleted;
  }

  std::unique_ptr<LoneTable> table_;
  uint64_t slots_;
  const Settings* settings_;
  uint64_t next_ = 0;  // the next key
  uint64_t records_ = 0;
  std::string key_ = std::string(8, '\0');
  std::string value_ = std::string(8, '\0');
};

// What our put of a new key takes: 2 or 3 trips if a slot is empty. Otherwise one that finds both taken; for
// each migration, two to follow the chain and two to copy; and two that put the key.
double OurTrips(bool primary_taken, uint64_t migrations) {
  if (migrations == 0) return primary_taken ? 3 : 2;
  return 3 + 4 * static_cast<double>(migrations);
}

struct OfModel {
  double trips = 0;
  double placed = 0;  // the share of keys that find a place
};

// Puts at this load, where a record drawn at random is deleted for each: the load stays, and which keys stand
// side by side is forgotten in time.
OfModel ModelWithDeletes(uint64_t slots, double load, uint64_t chain) {
  CuckooModel model(slots, 1, 1);
  while (model.load() < load) model.Put(model.DrawKey(), chain);
  double trips = 0;
  uint64_t placed = 0;
  uint64_t tries = 0;
  for (uint64_t i = 0; i < 3 * slots; ++i) {
    model.DeleteAny();
    const bool counts = i >= 2 * slots;
    while (true) {
      const CuckooModel::Choices key = model.DrawKey();
      const bool primary_taken = model.IsFull(key[0]);
      const std::optional<uint64_t> migrations = model.Put(key, chain);
      if (counts) ++tries;
      if (!migrations.has_value()) continue;
      if (counts) {
        ++placed;
        trips += OurTrips(primary_taken, *migrations);
      }
      break;
    }
  }
  return {.trips = trips / static_cast<double>(placed),
          .placed = static_cast<double>(placed) / static_cast<double>(tries)};
}

struct PaperPut {
  double load;
  double trips;
};
constexpr std::array kTable1 = {PaperPut{0.1, 2.5}, PaperPut{0.25, 3.5}, PaperPut{0.5, 5.8},
                                PaperPut{0.75, 9.9}, PaperPut{0.9, 13.3}};

Status AddPuts(const PaperPut& paper, Filled& table, uint64_t puts, uint64_t model_slots, Report& report) {
  Filled::Counts filling;
  if (Status filled = table.FillTo(paper.load, filling); !filled.ok()) return filled;
  Filled::Counts counts;
  if (Status put = table.PutAndDelete(puts, counts); !put.ok()) return put;
  const std::string name = fmt::format("load {}, ", paper.load);
  const auto add = [&](std::string_view what, std::optional<double> of_paper, double ours, Rule rule,
                       Unit unit = Unit::kTrips) {
    report.rows.push_back({name + std::string(what), of_paper, ours, rule, unit});
  };
  add("put of a new key", paper.trips, counts.Trips(), Rule::AtMost(paper.trips));
  add("the paper's algorithms, fewest trips", paper.trips, PaperTripsOfPut(paper.load, Reading::kFewest),
      Rule::Reported());
  add("the paper's algorithms, closest reading", paper.trips, PaperTripsOfPut(paper.load, Reading::kClosest),
      Rule::Reported());
  add("ours, were slots independent", kNotGiven, IndependentTripsOfPut(paper.load, kUsualChain),
      Rule::Reported());
  add("index trips", kNotGiven, counts.IndexTrips(), Rule::Reported());
  add("keys without a place", kNotGiven, 1 - counts.PlacedShare(), Rule::Reported(), Unit::kShare);
  for (const uint64_t chain : {uint64_t{1}, kUsualChain}) {
    const OfModel churned = ModelWithDeletes(model_slots, paper.load, chain);
    add(fmt::format("other keys deleted, chain {} (model)", chain), kNotGiven, churned.trips,
        Rule::Reported());
  }
  return OkStatus();
}

Result<Report> RunPuts(const Settings& settings) {
  const uint64_t slots = std::bit_ceil(settings.Scaled(uint64_t{1} << 16, uint64_t{1} << 20, 1 << 10));
  const uint64_t puts = settings.Scaled(4000, 100'000, 200);
  const uint64_t model_slots = settings.Scaled(uint64_t{1} << 13, uint64_t{1} << 17, 1 << 10);
  Result<Filled> table = Filled::Make(slots, kUsualChain, settings);
  if (!table.ok()) return table.error();
  Report report;
  for (const PaperPut& paper : kTable1) {
    if (Status added = AddPuts(paper, *table, puts, model_slots, report); !added.ok()) return added.error();
  }
  report.set_up = fmt::format(
      "One client and a table of {} slots that may not grow (grow=no, chain={}). It is filled by puts of\n"
      "new keys to each load in turn; there, {} puts of new keys are counted, end to end, and each of\n"
      "these keys is deleted again (not counted), so that the load stays. Keys that find no place are\n"
      "left out, while filling and while counting: one slot to a choice cannot be filled past 0.5\n"
      "without that. --full: {} puts at each load.",
      Grouped(slots), kUsualChain, Grouped(puts), Grouped(100'000));
  report.note = fmt::format(
      "The paper's figures are computed, not measured, and its text does not say how. Its algorithms 1\n"
      "and 2 are counted here in two ways, both with every slot taken with the probability of the load,\n"
      "whatever stands elsewhere: see PaperTripsOfPut. The second way was chosen because it agrees with\n"
      "the table; it explains the figures, and does not prove them. Ours takes 2 trips if the primary\n"
      "slot is empty, 3 if only the secondary is, 3 + 4 for each migration otherwise. Above 0.5, the\n"
      "keys that find a place are those next to the few empty slots, by short chains; the others are\n"
      "left out. Other keys deleted: the model, where each put is answered by the delete of a record\n"
      "drawn at random, of {} slots. That opens holes far away, which chains of {} reach by many trips:\n"
      "they place keys that the paper's single migrations would not, and at 0.75 take more trips than\n"
      "these.",
      Grouped(model_slots), kUsualChain);
  return report;
}

// ---- single migrations -----------------------------------------------------------------------------------

constexpr std::array kMigrationLoads = {0.25, 0.5, 0.75, 0.9};
constexpr double kLoadOfPaper = 0.75;
constexpr double kShareOfPaper = 0.70;
constexpr double kWindow = 0.01;  // of the load, to either side

struct SingleMigrations {
  double placed = 0;
  double full_alternatives = 0;
};

// The same by the model, of one slot to a choice and single migrations.
SingleMigrations ModelOfMigrations(CuckooModel& model, double load) {
  SingleMigrations figures;
  uint64_t placed = 0;
  uint64_t tries = 0;
  while (model.load() < load + kWindow) {
    if (figures.full_alternatives == 0 && model.load() >= load)
      figures.full_alternatives = model.ShareOfFullAlternatives();
    const bool counts = model.load() >= load - kWindow;
    const bool fits = model.Put(model.DrawKey(), 1).has_value();
    if (counts) ++tries;
    if (counts && fits) ++placed;
  }
  figures.placed = static_cast<double>(placed) / static_cast<double>(std::max<uint64_t>(tries, 1));
  return figures;
}

Status AddMigrations(double load, Filled& table, CuckooModel& model, Report& report) {
  Filled::Counts filling;
  if (Status filled = table.FillTo(load - kWindow, filling); !filled.ok()) return filled;
  Filled::Counts counts;
  if (Status filled = table.FillTo(load + kWindow, counts); !filled.ok()) return filled;
  const SingleMigrations of_model = ModelOfMigrations(model, load);
  const bool is_claim = load == kLoadOfPaper;
  const std::optional<double> paper = is_claim ? std::optional(kShareOfPaper) : kNotGiven;
  const auto add = [&](std::string_view what, std::optional<double> of_paper, double ours,
                       Rule rule = Rule::Reported()) {
    report.rows.push_back({fmt::format("load {}, {}", load, what), of_paper, ours, rule, Unit::kShare});
  };
  add("keys that find a place", paper, counts.PlacedShare(),
      is_claim ? Rule::AtLeast(0.54) : Rule::Reported());
  add("keys that find none", kNotGiven, 1 - counts.PlacedShare(),
      is_claim ? Rule::AtLeast(0.44) : Rule::Reported());
  add("the first, by the model", kNotGiven, of_model.placed);
  add("the first, were slots independent", paper, 1 - std::pow(load, 4));
  add("migrations that succeed, of those needed", kNotGiven,
      Filled::Counts::Per(counts.migrations, counts.migrations + counts.refused));
  add("other slots of records that are taken (model)", kNotGiven, of_model.full_alternatives);
  add("1 - (load * that) squared", paper, 1 - std::pow(load * of_model.full_alternatives, 2));
  return OkStatus();
}

Result<Report> RunMigration(const Settings& settings) {
  const uint64_t slots = std::bit_ceil(settings.Scaled(uint64_t{1} << 19, uint64_t{1} << 22, 1 << 12));
  Result<Filled> table = Filled::Make(slots, 1, settings);
  if (!table.ok()) return table.error();
  CuckooModel model(slots, 1, 1);
  Report report;
  for (const double load : kMigrationLoads) {
    if (Status added = AddMigrations(load, *table, model, report); !added.ok()) return added.error();
  }
  report.set_up = fmt::format(
      "One client and a table of {} slots that may not grow, and whose puts make one migration at most\n"
      "(grow=no, chain=1). It is filled by puts of new keys, those that find no place left out; counted\n"
      "is what becomes of new keys between one percent below and one above each load. The model is a\n"
      "table in local memory with random choices.",
      Grouped(slots));
  report.note =
      "The paper's 70 % is 1 - 0.75^4: a key finds a place unless both of its slots are taken, and the\n"
      "other slots of the two records there. That takes the four for independent. They are not: a record\n"
      "that was put into its secondary slot, or was moved, stands there because its other slot was\n"
      "taken; and what is put into an empty slot fills the other slot of records that stand elsewhere.\n"
      "So nine in ten of the other slots are taken at 0.75.";
  return report;
}

// ---- reads -----------------------------------------------------------------------------------------------

double PerOperation(uint64_t sum, const KindTrips& kind) { return Filled::Counts::Per(sum, kind.operations); }

double VerbsOf(const KindTrips& kind) { return PerOperation(kind.tally.Verbs(), kind); }

double BytesOf(const KindTrips& kind) {
  uint64_t bytes = 0;
  for (const fabric::Purpose purpose : {fabric::Purpose::kIndex, fabric::Purpose::kBlock})
    bytes += kind.tally.by_purpose[static_cast<size_t>(purpose)].bytes_read;
  return PerOperation(bytes, kind);
}

void AddReads(const std::string& what, const KindTrips& kind, std::optional<double> paper, Rule rule,
              Report& report) {
  report.rows.push_back({what, paper, kind.end_to_end, rule, Unit::kTrips});
  report.rows.push_back({what + ", index trips", kNotGiven, kind.index, Rule::Reported(), Unit::kTrips});
  report.rows.push_back({what + ", verbs", kNotGiven, VerbsOf(kind), Rule::Reported(), Unit::kNumber});
  report.rows.push_back({what + ", bytes read", kNotGiven, BytesOf(kind), Rule::Reported(), Unit::kBytes});
}

Result<Report> RunReads(const Settings& settings) {
  const uint64_t slots = std::bit_ceil(settings.Scaled(uint64_t{1} << 18, uint64_t{1} << 20, 1 << 10));
  TripsPlan plan{.engine = "nessie", .options = {{"slots", std::to_string(slots)}}, .records = slots * 3 / 8};
  const Result<TripFigures> settled = MeasureTrips(plan, settings.progress);
  if (!settled.ok()) return settled.error();
  plan.options = {};
  const Result<TripFigures> grown = MeasureTrips(plan, settings.progress);
  if (!grown.ok()) return grown.error();
  Report report;
  AddReads("search", settled->search, 2, Rule::AtMost(2), report);
  AddReads("search of an absent key", settled->absent, kNotGiven, Rule::Reported(), report);
  AddReads("search in a table that has grown", grown->search, kNotGiven, Rule::Reported(), report);
  AddReads("search of an absent key in it", grown->absent, kNotGiven, Rule::Reported(), report);
  report.set_up = fmt::format(
      "One client, {} records in {} slots, a load of 0.375: every record is searched, and as many keys\n"
      "that are not there. Then the same in a table that began with 64 slots and has grown to this size.",
      Grouped(plan.records), Grouped(slots));
  report.note =
      "A search reads both slots by one trip and the items whose tag is the key's by the next. The paper\n"
      "reads the secondary slot only if the primary one has another key: 2 trips for some keys, 4 for\n"
      "the others. A search that finds nothing reads both slots again: the second trip of an absent key.";
  return report;
}

// ---- the load at which the table must grow ---------------------------------------------------------------

constexpr std::array<uint64_t, 7> kChains = {1, 2, 4, 8, 16, 32, 64};
constexpr std::array<uint32_t, 3> kPerChoice = {1, 2, 4};
constexpr double kLeastLoad = 0.45;
constexpr uint64_t kModels = 4;

// The mean of some tables: where the first key finds no place is a matter of chance.
double LoadOfModel(uint64_t slots, uint32_t per_choice, uint64_t chain) {
  double sum = 0;
  for (uint64_t seed = 1; seed <= kModels; ++seed) {
    CuckooModel model(slots, per_choice, seed);
    while (model.Put(model.DrawKey(), chain).has_value()) {
    }
    sum += model.load();
  }
  return sum / kModels;
}

Result<Report> RunLoad(const Settings& settings) {
  const uint64_t slots = std::bit_ceil(settings.Scaled(uint64_t{1} << 20, uint64_t{1} << 20, 1 << 12));
  Report report;
  for (const uint64_t chain : kChains) {
    // The others are left to the model, unless there is time.
    if (chain != kUsualChain && !settings.full) continue;
    Result<Filled> table = Filled::Make(slots, chain, settings);
    if (!table.ok()) return table.error();
    if (Status filled = table->FillUntilRefused(); !filled.ok()) return filled.error();
    report.rows.push_back({fmt::format("chain {}, load at which a key finds no place", chain), kNotGiven,
                           table->load(), chain == kUsualChain ? Rule::AtLeast(kLeastLoad) : Rule::Reported(),
                           Unit::kShare});
  }
  for (const uint32_t per_choice : kPerChoice) {
    for (const uint64_t chain : kChains) {
      report.rows.push_back({fmt::format("model, {} slot{} to a choice, chain {}", per_choice,
                                         per_choice == 1 ? "" : "s", chain),
                             kNotGiven, LoadOfModel(slots, per_choice, chain), Rule::Reported(),
                             Unit::kShare});
    }
  }
  report.set_up = fmt::format(
      "A table of {} slots that may not grow, filled by puts of new keys until one finds no place: the\n"
      "load at which it would have to grow, by the bound of its chains. The model is a table in local\n"
      "memory with random choices, the mean of {}; --full: all chains by the table itself too.",
      Grouped(slots), kModels);
  report.note =
      "The paper gives no such load. With one slot to a choice, about half of the slots is the most for\n"
      "any bound: from there on, some circles of slots have more records than slots. With 2 or 4 slots\n"
      "to a choice, the model looks at as many buckets, breadth first; a reader would have to read them\n"
      "whole.";
  return report;
}

constexpr std::array kExperiments = {
    Experiment{"nessie-puts", "round trips of a put of a new key, by load (Nessie, table 1)", RunPuts},
    Experiment{"nessie-migration", "how often one migration is enough (Nessie, section 4)", RunMigration},
    Experiment{"nessie-reads", "round trips of searches (Nessie, section 1)", RunReads},
    Experiment{"nessie-load", "the load at which the table must grow, by the bound of chains", RunLoad},
    Experiment{"nessie-ycsb", "throughput of YCSB beside shard", RunNessieYcsb},
    Experiment{"nessie-growth", "puts while the table grows, by slots swept", RunNessieGrowth},
};

}  // namespace

std::span<const Experiment> NessieExperiments() { return kExperiments; }

// Verbs are posted together where none depends on another; the paper's figure for a load of 0.1 is below 3,
// so its `finish` must be one trip, check and flag together.
//   first trip of a write: the item, CAS of the primary slot, a look at the secondary
//   primary empty, secondary empty: finish
//   primary empty, secondary taken: its item, finish
//   primary taken, secondary empty: the primary's item; CAS of the secondary; finish
//   both taken: the items, then migrations, and the write again
//   a migration: a look at the source, its item, the copy with the CAS of the destination, CAS of the source,
//   the flag; one that finds its destination taken ends at the third of these
// The primary's item is migrated if its other slot is empty; otherwise the secondary's, which always
// succeeds. Readings differ in two steps: whether the secondary slot is looked at once more before its CAS
// (`secondary_write` "ensures that it is empty"), and whether both items are read by one trip or two.
double PaperTripsOfPut(double load, Reading reading) {
  constexpr double kFirst = 1;
  constexpr double kItem = 1;
  constexpr double kCas = 1;
  constexpr double kFinish = 1;
  constexpr double kMigration = 5;
  constexpr double kMigrationInVain = 3;
  const double again = reading == Reading::kClosest ? 1 : 0;
  const double both_empty = kFirst + kFinish;
  const double secondary_taken = kFirst + kItem + kFinish;
  const double primary_taken = kFirst + kItem + again + kCas + kFinish;
  const double both_taken = kFirst + kItem + again;
  const double by_primary = both_taken + kMigration + secondary_taken;
  const double by_secondary = both_taken + kMigrationInVain + kMigration + primary_taken;
  const double empty = 1 - load;
  return empty * empty * both_empty + empty * load * secondary_taken + load * empty * primary_taken +
         load * load * (empty * by_primary + load * by_secondary);
}

// Both ways are followed at the same time, and each slot on them is taken with the probability of the load.
double IndependentTripsOfPut(double load, uint64_t chain) {
  double share = 1 - load + load * (1 - load);  // of keys that have found a place so far
  double trips = (1 - load) * OurTrips(false, 0) + load * (1 - load) * OurTrips(true, 0);
  double both_taken = load * load;
  for (uint64_t migrations = 1; migrations <= chain; ++migrations) {
    const double ends = both_taken * (1 - load * load);
    share += ends;
    trips += ends * OurTrips(true, migrations);
    both_taken *= load * load;
  }
  return trips / share;
}

}  // namespace farside::tools::paper
