#include "tools/bench/index_table.h"

#include <chrono>
#include <utility>

#include "fabric/run.h"
#include "pool/memory/reach.h"
#include "store/engines.h"

namespace farside::tools {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

namespace {

// Between two syncs of a client that waits for the others.
constexpr Nanos kIdlePause = std::chrono::milliseconds(1);

class MemorySum final : public pool::Reach {
 public:
  void Mark(fabric::FarAddr, uint64_t bytes) override { memory_.index_bytes += bytes; }
  void MarkBlock(fabric::FarAddr, uint64_t bytes, uint64_t) override { memory_.block_bytes += bytes; }
  const BenchMemory& memory() const { return memory_; }

 private:
  BenchMemory memory_;
};

}  // namespace

Task<bool> IndexTable::Join(const BenchPlan& plan) {
  Op op(*client_, OpKind::kMaintenance);
  registration_ = co_await store::Registration::Join(op, *client_, store::MakeEngine, options_);
  table_.emplace(
      co_await registration_->tables().CreateOrOpen(op, plan.table, plan.engine_name, plan.engine_options));
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return table_->created;
}

Task<bool> IndexTable::Get(std::string_view key, std::string& value) {
  Op op(*client_, OpKind::kSearch);
  co_return co_await index().Get(op, key, value);
}

Task<bool> IndexTable::Insert(std::string_view key, std::string_view value) {
  Op op(*client_, OpKind::kInsert);
  co_return co_await index().Insert(op, key, value);
}

Task<Done> IndexTable::Put(std::string_view key, std::string_view value) {
  Op op(*client_, OpKind::kInsert);
  co_await index().Put(op, key, value);
  co_return Done{};
}

Task<bool> IndexTable::Update(std::string_view key, std::string_view value) {
  Op op(*client_, OpKind::kUpdate);
  co_return co_await index().Update(op, key, value);
}

Task<bool> IndexTable::Scan(const KeyRange& range, size_t limit, std::vector<Record>& page) {
  Op op(*client_, OpKind::kScan);
  co_return co_await index().Scan(op, range, limit, page);
}

Status IndexTable::RunAll(std::span<Task<Done>> tasks) {
  client_->set_concurrency(tasks.size());
  for (Task<Done>& task : tasks) task.Start();
  return OkStatus();
}

Result<BenchSize> IndexTable::Measure() {
  client_->set_concurrency(1);
  Op op(*client_, OpKind::kMaintenance);
  MemorySum sum;
  {
    const pool::PoolClient::Pin pin = registration_->pool().Begin();
    const Result<Done> walked = fabric::Run(*client_, index().Walk(op, sum));
    if (!walked.ok()) return walked.error();
  }
  Result<TableStats> stats = fabric::Run(*client_, index().Stats(op));
  if (!stats.ok()) return stats.error();
  return BenchSize{.memory = sum.memory(), .stats = std::move(*stats)};
}

Task<Done> IndexTable::Maintain() {
  maintaining_ = true;
  Op op(*client_, OpKind::kMaintenance);
  const Result<Done> maintained = co_await registration_->pool().Maintain(op).Outcome();
  maintaining_ = false;
  if (!maintained.ok()) co_return maintained.error();
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

// Blocks that other clients have retired can be used again only when this client has synced.
Task<Done> IndexTable::AwaitEnd(BenchPhase& phase) {
  pool::PoolClient& pool = registration_->pool();
  while (!phase.over() && !phase.failed()) {
    Op op(*client_, OpKind::kMaintenance);
    co_await op.Pause(kIdlePause);
    // A look at all other clients takes more trips, and is not needed each time.
    if (pool.NeedsGrace() || pool.MaintenanceDue()) {
      co_await Maintain();
    } else {
      co_await pool.Sync(op, /*raise=*/false);
    }
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
  }
  co_return Done{};
}

}  // namespace farside::tools
