// farside::Pool and farside::Table: the public face of PoolState and TableState.
#include "farside/pool.h"

#include <fmt/format.h>

#include <utility>

#include "base/bytes.h"
#include "farside/table.h"
#include "index/tables.h"
#include "store/engines.h"
#include "store/handles.h"
#include "store/pool_state.h"

namespace farside {
namespace {

Result<store::PoolState::MadeTable> CreateOrOpen(store::PoolState& pool, std::string_view name,
                                                 const TableOptions& options) {
  const std::string_view engine = options.engine.empty() ? store::DefaultEngine() : options.engine;
  // An engine that does not exist is refused by the pool.
  if (!store::KeepsRecords(engine)) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the engine '{}' only measures the fabric and keeps no records; tables have one "
                             "of: {}",
                             engine, store::EngineNames()));
  }
  return pool.CreateOrOpen(name, engine, options.options);
}

// Of tables that were moved from. Never destroyed: a reference to it may be used as long as the program runs.
const std::string& NoName() {
  static const auto* const none = new std::string();
  return *none;
}

}  // namespace

Result<Pool> Pool::Open(std::string_view url, const PoolOptions& options) {
  if (options.lease < std::chrono::milliseconds(1))
    return Error(ErrorCode::kInvalidArgument, "a lease lasts at least a millisecond");
  store::PoolStateOptions internal;
  internal.open.format.client_slots = options.client_slots;
  internal.open.format.table_slots = options.table_slots;
  internal.client.lease.lease = options.lease;
  Result<std::shared_ptr<store::PoolState>> state = store::PoolState::Open(url, internal);
  if (!state.ok()) return state.error();
  return Pool(std::move(*state));
}

Result<Table> Pool::CreateTable(std::string_view name, const TableOptions& options) {
  if (state_ == nullptr) return store::MovedFrom("pool");
  Result<store::PoolState::MadeTable> made = CreateOrOpen(*state_, name, options);
  if (!made.ok()) return made.error();
  if (!made->created)
    return Error(ErrorCode::kAlreadyExists, fmt::format("table '{}' exists already", Escape(name)));
  return Table(std::move(made->table));
}

Result<Table> Pool::OpenTable(std::string_view name) {
  if (state_ == nullptr) return store::MovedFrom("pool");
  Result<std::shared_ptr<const store::TableState>> table = state_->OpenTable(name);
  if (!table.ok()) return table.error();
  return Table(std::move(*table));
}

Result<Table> Pool::OpenOrCreateTable(std::string_view name, const TableOptions& options) {
  if (state_ == nullptr) return store::MovedFrom("pool");
  if (options.engine.empty() && options.options.empty()) {
    Result<Table> table = OpenTable(name);
    if (table.ok() || table.error().code() != ErrorCode::kNotFound) return table;
  }
  Result<store::PoolState::MadeTable> made = CreateOrOpen(*state_, name, options);
  if (!made.ok()) return made.error();
  return Table(std::move(made->table));
}

Status Pool::DropTable(std::string_view name) {
  if (state_ == nullptr) return store::MovedFrom("pool");
  return state_->DropTable(name);
}

Result<std::vector<TableInfo>> Pool::ListTables() {
  if (state_ == nullptr) return store::MovedFrom("pool");
  Result<std::vector<pool::TableInfo>> found = state_->ListTables();
  if (!found.ok()) return found.error();
  std::vector<TableInfo> tables;
  for (pool::TableInfo& table : *found) {
    Result<index::OptionMap> options = index::ParseOptions(table.options);
    if (!options.ok()) return options.error();
    tables.push_back(
        {.name = std::move(table.name), .engine = std::move(table.engine), .options = std::move(*options)});
  }
  return tables;
}

Result<Session> Pool::NewSession() {
  if (state_ == nullptr) return store::MovedFrom("pool");
  Result<std::unique_ptr<store::SessionState>> session = state_->NewSession();
  if (!session.ok()) return session.error();
  return Session(state_, std::move(*session));
}

Status Pool::Close() {
  if (state_ == nullptr) return store::MovedFrom("pool");
  return state_->Close();
}

const std::string& Table::name() const { return state_ != nullptr ? state_->info.name : NoName(); }
const std::string& Table::engine() const { return state_ != nullptr ? state_->info.engine : NoName(); }
bool Table::ordered() const { return state_ != nullptr && state_->ordered; }

}  // namespace farside
