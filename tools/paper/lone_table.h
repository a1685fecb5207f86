// A table on a simulated pool, and its only client: for what is counted operation by operation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/run.h"
#include "fabric/sim/timed/timed.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/tables.h"
#include "store/registration.h"

namespace farside::tools::paper {

class LoneTable {
 public:
  // With memory for so many records, as the benchmark plans it.
  static Result<std::unique_ptr<LoneTable>> Make(const std::string& engine, const index::OptionMap& options,
                                                 uint64_t records);

  fabric::Client& client() { return *client_; }
  index::Index& index() { return *table_->index; }
  const index::Engine& engine() const { return *engine_; }
  const pool::TableInfo& info() const { return table_->info; }
  // What handlers have flushed and drained so far.
  fabric::FlushCounts flushed() const { return cluster_->flushed(); }

  template <class T>
  Result<T> Run(Task<T> task) {
    return fabric::Run(*client_, std::move(task));
  }
  // Syncs, if it is time: to be called every few operations.
  Status Maintain();
  Result<index::TableStats> Stats();

 private:
  LoneTable() = default;
  Task<Done> Join(const std::string& engine, const index::OptionMap& options);

  std::shared_ptr<index::Engine> engine_;
  std::unique_ptr<fabric::sim::TimedFabric> cluster_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Registration> session_;
  std::optional<index::OpenTable> table_;
};

}  // namespace farside::tools::paper
