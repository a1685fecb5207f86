// The tables of a pool by name, as one client of it sees them: making, opening, dropping, and walking all of
// them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/index.h"
#include "pool/catalog/catalog.h"
#include "pool/client.h"
#include "pool/memory/reach.h"

namespace farside::index {

// An engine by its name, with options; kInvalidArgument if there is no such engine or option.
using FindEngine =
    std::function<Result<std::shared_ptr<Engine>>(std::string_view name, const OptionMap& options)>;

// "buckets=64 width=2", as the catalog records it; and back.
std::string ToText(const OptionMap& options);
Result<OptionMap> ParseOptions(std::string_view text);

// Why an engine that is not durable makes no table in a durable pool. `durable_engines`: those that do.
Error NotDurable(std::string_view engine, std::string_view durable_engines);

// A table that this client has open.
struct OpenTable {
  pool::TableInfo info;
  std::shared_ptr<Engine> engine;
  std::unique_ptr<Index> index;
  bool created = false;       // just now; otherwise it was there
  uint64_t validated_at = 0;  // catalog_changes of its home, as known before its entry was read (catalog/5)
};

class Tables {
 public:
  // `durable_engines` says which engines make tables in durable pools, for a message.
  using EngineNames = std::string (*)();
  Tables(pool::PoolClient& pool, FindEngine find_engine, EngineNames durable_engines = nullptr);

  // Makes an empty table on all nodes of the pool, or opens the table that has this name already. In that
  // case it is an error if an option that changes bytes differs from the table's; the other options apply to
  // this client. kUnsupported if the pool is durable and the engine promises nothing about power cuts.
  Task<OpenTable> CreateOrOpen(fabric::Op& op, std::string name, std::string engine, OptionMap options);
  // With the options that the catalog records; options that change no bytes have their defaults.
  Task<OpenTable> Open(fabric::Op& op, std::string name);
  // A table that another client of this process has open, with the options that it was opened with. No trips;
  // the first Validate checks that the table still exists.
  Result<OpenTable> OpenKnown(const pool::TableInfo& info, const OptionMap& options);
  // Fails with kNotFound if the table was dropped since it was opened. To be awaited before an operation
  // begins; costs a trip only if the catalog has changed.
  Task<Done> Validate(fabric::Op& op, OpenTable& table);
  // All tables, of all nodes, sorted by name.
  Task<std::vector<pool::TableInfo>> List(fabric::Op& op);
  // Frees every byte of the table, after a grace period. When it has ended, the memory can be used again.
  Task<Done> Drop(fabric::Op& op, std::string name);

  // The engine that a table was made with. kInvalidArgument if this build has no engine of that name,
  // kVersionMismatch if it has one with another layout.
  Result<std::shared_ptr<Engine>> EngineOf(const pool::TableInfo& info) const;
  // Marks what is reachable from any table; for PoolClient::set_walk.
  Task<Done> Walk(fabric::Op& op, pool::Reach& reach);

 private:
  pool::Membership& HomeOf(std::string_view name);
  // The table existed when so many changes of the catalog of its home were known.
  void Confirm(OpenTable& table, uint64_t catalog_changes);
  OpenTable OpenWith(std::shared_ptr<Engine> engine, pool::TableInfo info, uint64_t validated_at);
  // To drop a table takes all nodes: one that is out of reach cannot tell what its clients still use.
  Status CheckNodes() const;
  Task<Done> WaitForGrace(fabric::Op& op, size_t nodes);
  Task<Done> FreeTable(fabric::Op& op, pool::TableInfo info);

  pool::PoolClient& pool_;
  const FindEngine find_engine_;
  const EngineNames durable_engines_;
};

}  // namespace farside::index
