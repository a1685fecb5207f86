// Whole tables in a whole pool: clients create tables of blocks and drop them, die at any moment, adopt what
// others have left, and in the end fsck finds every byte.
//
// A table is a root block that names some other blocks. Its walk is what an engine's would be.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pool/catalog/catalog.h"
#include "pool/client.h"
#include "pool/fsck/fsck.h"
#include "tests/pool/pool_run.h"

namespace farside::pool {

inline constexpr fabric::NodeId kTablesNode{0};
inline constexpr size_t kBlocksOfATable = 4;

inline std::vector<fabric::NodeId> AllNodes(size_t nodes) {
  std::vector<fabric::NodeId> all;
  for (size_t node = 0; node < nodes; ++node) all.push_back(static_cast<fabric::NodeId>(node));
  return all;
}

struct TableRoot {
  std::array<uint64_t, kBlocksOfATable> blocks;  // offsets
  std::array<uint64_t, kBlocksOfATable> bytes;
};
static_assert(sizeof(TableRoot) == kLine);

// On each of its nodes. In a durable pool, the table is durable when it is returned, and its blocks hold what
// CheckTable expects.
Task<std::vector<fabric::FarAddr>> MakeTable(fabric::Op& op, PoolClient& client, TableInfo table);

// kCorrupt if a table of a durable pool does not hold what it was made with.
Task<Done> CheckTable(fabric::Op& op, TableInfo table);

Task<Done> FreeBlocks(fabric::Op& op, PoolClient& client, TableInfo table);

template <class Marked>
Task<Done> WalkTables(fabric::Op& op, std::vector<TableInfo> tables, Marked& reach) {
  for (const TableInfo& table : tables) {
    for (const fabric::FarAddr at : table.roots) {
      const TableRoot root = co_await op.InOrder(fabric::Read<TableRoot>(at));
      reach.Mark(at, sizeof(root));
      for (size_t i = 0; i < kBlocksOfATable; ++i)
        reach.Mark(fabric::FarAddr(at.node, root.blocks[i]), root.bytes[i]);
    }
  }
  co_return Done{};
}

// One client of the pool.
class TablesClient {
 public:
  explicit TablesClient(std::unique_ptr<PoolClient> client) : client_(std::move(client)) {
    for (const fabric::NodeId node : AllNodes(client_->nodes()))
      catalogs_.emplace_back(client_->member(node));
    client_->set_walk([this](fabric::Op& op, Reach& reach) { return Walk(op, reach); });
  }

  Task<Done> Create(fabric::Op& op, std::string name) {
    TableSpec spec;
    spec.name = std::move(name);
    spec.engine = "blocks";
    spec.nodes = AllNodes(client_->nodes());
    std::optional<PoolClient::Pin> pin;  // of what is allocated, until it is reachable
    const Catalog::MakeRoots make = [&](fabric::Op& making, TableInfo table) {
      pin.emplace(client_->Begin());
      return MakeTable(making, *client_, std::move(table));
    };
    co_await CatalogOf(spec.name).Create(op, spec, make);
    co_return Done{};
  }

  // Whether the table is there. kCorrupt if it is, and is not what it was made as (of durable pools).
  Task<bool> Check(fabric::Op& op, std::string name) {
    const Result<TableInfo> table = co_await CatalogOf(name).Open(op, name).Outcome();
    if (!table.ok() && table.error().code() == ErrorCode::kNotFound) co_return false;
    if (!table.ok()) co_return table.error();
    const PoolClient::Pin pin = client_->Begin();
    co_await CheckTable(op, *table);
    co_return true;
  }

  Task<Done> Drop(fabric::Op& op, std::string name) {
    const Catalog::WaitForGrace wait = [this](fabric::Op& waiting) { return Grace(waiting); };
    const Catalog::FreeTable free = [this](fabric::Op& freeing, TableInfo table) {
      return FreeBlocks(freeing, *client_, std::move(table));
    };
    const Result<Done> dropped = co_await CatalogOf(name).Drop(op, name, wait, free).Outcome();
    if (!dropped.ok() && dropped.error().code() != ErrorCode::kNotFound) co_return dropped.error();
    co_return Done{};
  }

  // A sweep that has to wait for a client's drop is no error.
  Task<Done> Maintain(fabric::Op& op) {
    const Result<Done> maintained = co_await client_->Maintain(op).Outcome();
    if (!maintained.ok() && maintained.error().code() != ErrorCode::kContended) co_return maintained.error();
    co_return Done{};
  }

  Task<Done> Leave(fabric::Op& op) {
    Result<Done> left = co_await client_->Leave(op).Outcome();
    while (!left.ok() && left.error().code() == ErrorCode::kContended) {
      co_await op.Pause(kTestLease / 8);
      left = co_await client_->Leave(op).Outcome();
    }
    co_return left;
  }

 private:
  Task<Done> Walk(fabric::Op& op, Reach& reach) {
    for (Catalog& catalog : catalogs_) {
      std::vector<TableInfo> tables = co_await catalog.TablesToWalk(op);
      co_await WalkTables(op, std::move(tables), reach);
    }
    co_return Done{};
  }

  Task<Done> Grace(fabric::Op& op) {
    // Shared with the callbacks, which may outlive this coroutine if an error ends it.
    const auto waiting = std::make_shared<size_t>(client_->nodes());
    for (const fabric::NodeId node : AllNodes(client_->nodes()))
      client_->AfterGrace(node, [waiting] { --*waiting; });
    while (*waiting > 0) {
      co_await Maintain(op);
      co_await op.Pause(Nanos(3000));
    }
    co_return Done{};
  }

  Catalog& CatalogOf(const std::string& name) { return catalogs_[Index(HomeOf(name, catalogs_.size()))]; }

  std::unique_ptr<PoolClient> client_;
  std::deque<Catalog> catalogs_;  // of each node
};

Task<std::unique_ptr<TablesClient>> JoinTables(fabric::Op& op, fabric::Client& client, Geometry geometry,
                                               size_t nodes = 1);

// Stays until no dead client has a slot, and leaves one table behind.
Task<Done> PutInOrder(fabric::Client& fabric_client, PoolRun& run);

Task<Done> CheckEverything(fabric::Client& fabric_client, PoolRun& run);

// Chunks enough for every client to own one of each size.
inline Geometry TablesGeometry() {
  return Geometry{.region_bytes = 1024 * 1024, .client_slots = 64, .table_slots = 16, .chunk_bytes = 4096};
}

RunOutcome RunTables(fabric::sim::SimOptions options, size_t clients = 2);

}  // namespace farside::pool
