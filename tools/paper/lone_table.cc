#include "tools/paper/lone_table.h"

#include "fabric/op.h"
#include "store/engines.h"
#include "tools/bench/options.h"
#include "tools/bench/sim.h"

namespace farside::tools::paper {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

Result<std::unique_ptr<LoneTable>> LoneTable::Make(const std::string& engine, const index::OptionMap& options,
                                                   uint64_t records) {
  BenchCommand command;
  command.engine = engine;
  command.options = options;
  command.records = records;
  command.fabric = Name(BenchFabric::kSim);
  const Result<BenchPlan> room = PlanBench(command);
  if (!room.ok()) return room.error();
  std::unique_ptr<LoneTable> table(new LoneTable);
  table->engine_ = room->engine;
  Result<std::unique_ptr<fabric::sim::TimedFabric>> cluster = MakeSimFabric(*room);
  if (!cluster.ok()) return cluster.error();
  table->cluster_ = std::move(*cluster);
  Result<std::unique_ptr<fabric::Client>> client = table->cluster_->Connect();
  if (!client.ok()) return client.error();
  table->client_ = std::move(*client);
  const Result<Done> joined = table->Run(table->Join(engine, options));
  if (!joined.ok()) return joined.error();
  return table;
}

Task<Done> LoneTable::Join(const std::string& engine, const index::OptionMap& options) {
  Op op(*client_, OpKind::kMaintenance);
  session_ = co_await store::Registration::Join(op, *client_, store::MakeEngine, {});
  table_.emplace(co_await session_->tables().CreateOrOpen(op, "paper", engine, options));
  co_return Done{};
}

Status LoneTable::Maintain() {
  if (!session_->pool().MaintenanceDue()) return OkStatus();
  Op op(*client_, OpKind::kMaintenance);
  const Result<Done> maintained = Run(session_->pool().Maintain(op));
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  if (!maintained.ok()) return maintained.error();
  return OkStatus();
}

Result<index::TableStats> LoneTable::Stats() {
  Op op(*client_, OpKind::kMaintenance);
  return Run(index().Stats(op));
}

}  // namespace farside::tools::paper
