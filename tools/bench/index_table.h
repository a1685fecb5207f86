// A table of a benchmark in a simulated cluster: a client of the fabric, its registration, and an index,
// without a session. A session's keeper is a thread of real time, so here the client syncs by itself.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/client.h"
#include "fabric/op.h"
#include "index/tables.h"
#include "pool/client.h"
#include "store/registration.h"
#include "tools/bench/options.h"
#include "tools/bench/table.h"

namespace farside::tools {

class IndexTable final : public BenchTable {
 public:
  IndexTable(std::unique_ptr<fabric::Client> client, const pool::ClientOptions& options)
      : client_(std::move(client)), options_(options) {}

  // Joins the pool, and makes the table or opens it. True: it was made.
  Task<bool> Join(const BenchPlan& plan);

  Task<bool> Get(std::string_view key, std::string& value) override;
  Task<bool> Insert(std::string_view key, std::string_view value) override;
  Task<Done> Put(std::string_view key, std::string_view value) override;
  Task<bool> Update(std::string_view key, std::string_view value) override;
  Task<bool> Scan(const KeyRange& range, size_t limit, std::vector<Record>& page) override;

  Status RunAll(std::span<Task<Done>> tasks) override;
  Nanos Now() const override { return client_->Now(); }
  fabric::Counters& counters() override { return client_->counters(); }
  Result<BenchSize> Measure() override;

  bool MaintenanceDue() const override { return !maintaining_ && registration_->pool().MaintenanceDue(); }
  Task<Done> Maintain() override;
  Task<Done> AwaitEnd(BenchPhase& phase) override;
  uint64_t growth() const override { return table_->index->growth(); }

  fabric::Client& client() { return *client_; }

 private:
  index::Index& index() { return *table_->index; }

  // Destroyed in the opposite order.
  const std::unique_ptr<fabric::Client> client_;
  const pool::ClientOptions options_;
  std::unique_ptr<store::Registration> registration_;
  std::optional<index::OpenTable> table_;
  bool maintaining_ = false;
};

}  // namespace farside::tools
