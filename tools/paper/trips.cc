#include "tools/paper/trips.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fabric/op.h"
#include "tools/paper/lone_table.h"
#include "workload/records.h"

namespace farside::tools::paper {
namespace {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::OpTally;

constexpr uint64_t kOperationsPerLook = 32;
constexpr uint64_t kScanned = 100;

double Per(uint64_t sum, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

// One table and its only client.
class Meter {
 public:
  Meter(const TripsPlan& plan, const BenchProgress& progress) : plan_(plan), progress_(progress) {}

  Status SetUp() {
    Result<std::unique_ptr<LoneTable>> table = LoneTable::Make(plan_.engine, plan_.options, plan_.records);
    if (!table.ok()) return table.error();
    table_ = std::move(*table);
    client_ = &table_->client();
    ordered_ = table_->engine().traits().ordered;
    return OkStatus();
  }

  Result<TripFigures> Measure() {
    TripFigures figures;
    figures.insert = Phase("inserts", &Meter::Insert, OpKind::kInsert, OpOutcome::kDone, 1);
    figures.maintenance_beside_inserts = Per(beside_, plan_.records);
    if (failed_.ok()) {
      Result<index::TableStats> stats = table_->Stats();
      if (!stats.ok()) return stats.error();
      figures.loaded = std::move(*stats);
    }
    figures.search = Phase("searches", &Meter::Search, OpKind::kSearch, OpOutcome::kDone, 1);
    figures.absent =
        Phase("searches for what is absent", &Meter::SearchAbsent, OpKind::kSearch, OpOutcome::kRefused, 1);
    figures.repeated_search =
        Phase("repeated searches", &Meter::SearchAgain, OpKind::kSearch, OpOutcome::kDone, 1);
    figures.update = Phase("updates", &Meter::Update, OpKind::kUpdate, OpOutcome::kDone, 1);
    if (plan_.puts) figures.put = Phase("puts", &Meter::Put, OpKind::kInsert, OpOutcome::kDone, 1);
    if (ordered_) figures.scan = Phase("scans", &Meter::Scan, OpKind::kScan, OpOutcome::kDone, kScanned);
    figures.erase = Phase("deletes", &Meter::Delete, OpKind::kDelete, OpOutcome::kDone, 2);
    if (!failed_.ok()) return failed_.error();
    return figures;
  }

 private:
  using Step = Task<bool> (Meter::*)(uint64_t record);

  // Every `stride`th record once. Nothing, if an earlier phase has failed.
  KindTrips Phase(std::string_view what, Step step, OpKind kind, OpOutcome outcome, uint64_t stride) {
    if (!failed_.ok()) return {};
    counted_ = fabric::Counters();
    client_->counters() = fabric::Counters();
    const std::string name = fmt::format("{} {}", plan_.engine, what);
    for (uint64_t record = 0; record < plan_.records && failed_.ok(); record += stride) {
      if (record % 1024 == 0) progress_(name, record, plan_.records, "records");
      const Result<bool> ended = table_->Run((this->*step)(record));
      if (plan_.observe) {
        plan_.observe(what, client_->counters().at(kind, outcome));
        counted_.Add(client_->counters());
        client_->counters() = fabric::Counters();
      }
      if (!ended.ok()) {
        failed_ = ended.error();
      } else if (!*ended) {
        failed_ = Error(ErrorCode::kCorrupt,
                        fmt::format("{}: record {} has another answer than it must have", name, record));
      } else if (record % kOperationsPerLook == 0) {
        failed_ = table_->Maintain();
      }
    }
    counted_.Add(client_->counters());
    const OpTally& tally = counted_.at(kind, outcome);
    const OpTally& beside = counted_.at(OpKind::kMaintenance, OpOutcome::kDone);
    beside_ = tally.maintenance_trips + beside.maintenance_trips + beside.end_to_end_trips;
    return {.operations = tally.operations,
            .index = Per(tally.index_trips, tally.operations),
            .end_to_end = Per(tally.end_to_end_trips, tally.operations),
            .maintenance = Per(tally.maintenance_trips, tally.operations),
            .tally = tally};
  }

  void FillKey(uint64_t record) { workload::FillKey(record, key_); }
  void FillValue() { workload::FillValue(key_, version_++, value_); }

  Task<bool> Insert(uint64_t record) {
    FillKey(record);
    FillValue();
    Op op(*client_, OpKind::kInsert);
    const bool inserted = co_await table_->index().Insert(op, key_, value_);
    co_return inserted;
  }
  Task<bool> Put(uint64_t record) {
    FillKey(record);
    FillValue();
    Op op(*client_, OpKind::kInsert);
    co_await table_->index().Put(op, key_, value_);
    co_return true;
  }
  Task<bool> Search(uint64_t record) {
    FillKey(record);
    Op op(*client_, OpKind::kSearch);
    const bool found = co_await table_->index().Get(op, key_, read_);
    co_return (found && workload::IsValueOf(key_, read_, value_.size()));
  }
  Task<bool> SearchAbsent(uint64_t record) {
    FillKey(plan_.records + record);
    Op op(*client_, OpKind::kSearch);
    const bool found = co_await table_->index().Get(op, key_, read_);
    co_return !found;
  }
  // Only the second of the two counts.
  Task<bool> SearchAgain(uint64_t record) {
    const fabric::Counters before = client_->counters();
    const bool first = co_await Search(record);
    client_->counters() = before;
    const bool second = co_await Search(record);
    co_return (first && second);
  }
  Task<bool> Update(uint64_t record) {
    FillKey(record);
    FillValue();
    Op op(*client_, OpKind::kUpdate);
    const bool updated = co_await table_->index().Update(op, key_, value_);
    co_return updated;
  }
  // Behind the last key there are fewer; such scans are as right as others.
  Task<bool> Scan(uint64_t record) {
    FillKey(record);
    Op op(*client_, OpKind::kScan);
    page_.clear();
    co_await table_->index().Scan(op, KeyRange::From(key_), kScanned, page_);
    co_return !page_.empty() && page_.front().key == key_ && page_.size() <= kScanned;
  }
  Task<bool> Delete(uint64_t record) {
    FillKey(record);
    Op op(*client_, OpKind::kDelete);
    const bool deleted = co_await table_->index().Delete(op, key_);
    co_return deleted;
  }

  const TripsPlan& plan_;
  const BenchProgress& progress_;
  std::unique_ptr<LoneTable> table_;
  fabric::Client* client_ = nullptr;
  std::string key_ = std::string(8, '\0');
  std::string value_ = std::string(8, '\0');
  std::string read_;
  std::vector<Record> page_;
  bool ordered_ = false;
  uint32_t version_ = 0;
  fabric::Counters counted_;
  uint64_t beside_ = 0;  // maintenance trips of the phase
  Status failed_ = OkStatus();
};

}  // namespace

Result<TripFigures> MeasureTrips(const TripsPlan& plan, const BenchProgress& progress) {
  Meter meter(plan, progress);
  if (Status ready = meter.SetUp(); !ready.ok()) return ready.error();
  return meter.Measure();
}

}  // namespace farside::tools::paper
