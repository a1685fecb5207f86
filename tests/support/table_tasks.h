// A client of a pool that has one table open, and its operations as tasks: each has an Op of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/tables.h"
#include "store/registration.h"

namespace farside::index {

class TableTasks {
 public:
  static constexpr char kTable[] = "t";

  explicit TableTasks(std::unique_ptr<fabric::Client> client) : client_(std::move(client)) {}
  TableTasks(const TableTasks&) = delete;
  TableTasks& operator=(const TableTasks&) = delete;
  // The table and the session use the client.
  ~TableTasks() {
    table_.reset();
    session_.reset();
  }

  Index& index() { return *table_->index; }
  pool::PoolClient& pool() { return session_->pool(); }
  fabric::Client& client() { return *client_; }

  Task<PutOutcome> Put(std::string key, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kInsert);
    const PutOutcome outcome = co_await index().Put(op, key, value);
    co_return outcome;
  }
  Task<bool> Insert(std::string key, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kInsert);
    const bool inserted = co_await index().Insert(op, key, value);
    co_return inserted;
  }
  Task<bool> Update(std::string key, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kUpdate);
    const bool updated = co_await index().Update(op, key, value);
    co_return updated;
  }
  Task<bool> Delete(std::string key) {
    fabric::Op op(*client_, fabric::OpKind::kDelete);
    const bool deleted = co_await index().Delete(op, key);
    co_return deleted;
  }
  Task<bool> CompareAndSet(std::string key, std::string expected, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kUpdate);
    const bool set = co_await index().CompareAndSet(op, key, expected, value);
    co_return set;
  }
  Task<uint64_t> Increment(std::string key, uint64_t delta) {
    fabric::Op op(*client_, fabric::OpKind::kUpdate);
    const uint64_t counter = co_await index().Increment(op, key, delta);
    co_return counter;
  }
  Task<std::vector<Record>> Scan(KeyRange range, size_t limit) {
    fabric::Op op(*client_, fabric::OpKind::kScan);
    std::vector<Record> page;
    co_await index().Scan(op, range, limit, page);
    co_return page;
  }
  Task<TableStats> Stats() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    TableStats stats = co_await index().Stats(op);
    co_return stats;
  }
  Task<Done> Verify() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await index().Verify(op);
    co_return Done{};
  }
  Task<Done> Maintain() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await pool().Maintain(op);
    co_return Done{};
  }
  Task<Done> Drop() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await session_->tables().Drop(op, kTable);
    co_return Done{};
  }
  Task<Done> Leave() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    table_.reset();
    left_ = true;
    co_await session_->Leave(op);
    co_return Done{};
  }

 protected:
  // Joins the pool, and opens the table or makes it.
  Task<Done> Join(FindEngine find, Nanos lease, std::string engine, OptionMap table_options) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    pool::ClientOptions options;
    options.lease.lease = lease;
    session_ = co_await store::Registration::Join(op, *client_, find, options);
    table_.emplace(co_await session_->tables().CreateOrOpen(op, kTable, engine, table_options));
    co_return Done{};
  }

  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Registration> session_;
  std::optional<OpenTable> table_;
  bool left_ = false;
};

}  // namespace farside::index
