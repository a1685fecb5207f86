// Whole tables in a whole pool: clients create tables of blocks and drop them, die at any moment, adopt what others have
// left, and in the end fsck finds every byte.
//
// A table is a root block that names some other blocks. Its walk is what an engine's would be.
#pragma once

#include <array>
#include <list>
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

struct TableRoot {
  std::array<uint64_t, kBlocksOfATable> blocks;  // offsets
  std::array<uint64_t, kBlocksOfATable> bytes;
};
static_assert(sizeof(TableRoot) == kLine);

// Sizes that differ from table to table; one is an extent now and then.
inline uint64_t SizeOf(const TableInfo& table, size_t block) {
  if (block == 0 && table.incarnation % 3 == 0) return 20'000;
  return 64 * (1 + (table.incarnation * 7 + block * 5) % 20);
}

inline Task<std::vector<fabric::FarAddr>> MakeTable(fabric::Op& op, PoolClient& client, TableInfo table) {
  Allocator& allocator = client.allocator(kTablesNode);
  TableRoot root{};
  for (size_t i = 0; i < kBlocksOfATable; ++i) {
    const fabric::FarAddr block = co_await allocator.Allocate(op, SizeOf(table, i));
    root.blocks[i] = block.offset;
    root.bytes[i] = SizeOf(table, i);
  }
  const fabric::FarAddr at = co_await allocator.Allocate(op, sizeof(root));
  co_await op.InOrder(fabric::WriteObject(at, root));
  co_return std::vector<fabric::FarAddr>{at};
}

inline Task<Done> FreeBlocks(fabric::Op& op, PoolClient& client, TableInfo table) {
  const PoolClient::Pin pin = client.Begin();
  const TableRoot root = co_await op.InOrder(fabric::Read<TableRoot>(table.roots[0]));
  Allocator& allocator = client.allocator(kTablesNode);
  for (size_t i = 0; i < kBlocksOfATable; ++i) {
    allocator.Retire(fabric::FarAddr(kTablesNode, root.blocks[i]), root.bytes[i], pin.epoch(kTablesNode));
  }
  allocator.Retire(table.roots[0], sizeof(root), pin.epoch(kTablesNode));
  co_return Done{};
}

template <class Marked>
Task<Done> WalkTables(fabric::Op& op, std::vector<TableInfo> tables, Marked& reach) {
  for (const TableInfo& table : tables) {
    const TableRoot root = co_await op.InOrder(fabric::Read<TableRoot>(table.roots[0]));
    reach.Mark(table.roots[0], sizeof(root));
    for (size_t i = 0; i < kBlocksOfATable; ++i) {
      reach.Mark(fabric::FarAddr(kTablesNode, root.blocks[i]), root.bytes[i]);
    }
  }
  co_return Done{};
}

// One client of the pool.
class TablesClient {
 public:
  explicit TablesClient(std::unique_ptr<PoolClient> client)
      : client_(std::move(client)), catalog_(client_->member(kTablesNode)) {
    client_->set_walk([this](fabric::Op& op, Reach& reach) { return Walk(op, reach); });
  }

  Task<Done> Create(fabric::Op& op, std::string name) {
    TableSpec spec;
    spec.name = std::move(name);
    spec.engine = "blocks";
    spec.nodes = {kTablesNode};
    std::optional<PoolClient::Pin> pin;  // of what is allocated, until it is reachable
    const Catalog::MakeRoots make = [&](fabric::Op& making, TableInfo table) {
      pin.emplace(client_->Begin());
      return MakeTable(making, *client_, std::move(table));
    };
    co_await catalog_.Create(op, spec, make);
    co_return Done{};
  }

  Task<Done> Drop(fabric::Op& op, std::string name) {
    const Catalog::WaitForGrace wait = [this](fabric::Op& waiting) { return Grace(waiting); };
    const Catalog::FreeTable free = [this](fabric::Op& freeing, TableInfo table) {
      return FreeBlocks(freeing, *client_, std::move(table));
    };
    const Result<Done> dropped = co_await catalog_.Drop(op, std::move(name), wait, free).Outcome();
    if (!dropped.ok() && dropped.error().code() != ErrorCode::kNotFound) co_return dropped.error();
    co_return Done{};
  }

  // A sweep that has to wait for somebody's drop is no error.
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
    std::vector<TableInfo> tables = co_await catalog_.TablesToWalk(op);
    co_await WalkTables(op, std::move(tables), reach);
    co_return Done{};
  }

  Task<Done> Grace(fabric::Op& op) {
    bool passed = false;
    client_->AfterGrace(kTablesNode, [&passed] { passed = true; });
    while (!passed) {
      co_await Maintain(op);
      co_await op.Pause(Nanos(3000));
    }
    co_return Done{};
  }

  std::unique_ptr<PoolClient> client_;
  Catalog catalog_;
};

inline Task<std::unique_ptr<TablesClient>> JoinTables(fabric::Op& op, fabric::Client& client,
                                                      Geometry geometry) {
  ClientOptions options;
  options.lease.lease = kTestLease;
  const std::vector<Geometry> geometries = {geometry};
  std::unique_ptr<PoolClient> joined = co_await PoolClient::Join(op, client, geometries, options);
  co_return std::make_unique<TablesClient>(std::move(joined));
}

inline Task<Done> CreateAndDrop(fabric::Client& fabric_client, PoolRun& run, std::vector<std::string> names,
                                size_t& next) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry());
  while (next < 2 * names.size()) {
    const std::string name = names[next / 2];
    const bool create = next++ % 2 == 0;
    if (create) {
      co_await client->Create(op, name);
    } else {
      co_await client->Drop(op, name);
    }
    co_await client->Maintain(op);
  }
  co_await client->Leave(op);
  co_return Done{};
}

// Stays until the dead are buried, and leaves one table behind.
inline Task<Done> PutInOrder(fabric::Client& fabric_client, PoolRun& run) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry());
  co_await client->Create(op, "last");
  const Nanos enough = fabric_client.Now() + 6 * kTestLease;
  while (fabric_client.Now() < enough) {
    co_await client->Maintain(op);
    co_await op.Pause(kTestLease / 8);
  }
  co_await client->Leave(op);
  co_return Done{};
}

inline Task<Done> CheckEverything(fabric::Client& fabric_client, PoolRun& run) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  Membership member(fabric_client, kTablesNode, run.geometry(), LeaseOptions{.lease = kTestLease});
  Catalog catalog(member);
  std::vector<TableInfo> tables = co_await catalog.List(op);
  Reached reached;
  co_await WalkTables(op, std::move(tables), reached);
  FsckOptions options;
  FsckReport report = co_await Fsck(op, kTablesNode, run.geometry(), reached, options);
  for (const Finding& finding : report.findings) {
    // The simulated region has no superblock. A note is, say, the lock of one who died, which is taken over when needed.
    const bool superblock = finding.what.rfind("the superblock", 0) == 0;
    if (finding.severity != Severity::kNote && !superblock) run.Problem(finding.what);
  }
  if (report.counts.tables_live == 0) run.Problem("the last table is not there");
  if (report.bytes.held + report.bytes.abandoned + report.bytes.leaked + report.bytes.damaged > 0) {
    run.Problem("some bytes are neither reachable nor free");
  }
  if (report.bytes.Total() != run.geometry().region_bytes) run.Problem("some bytes are not counted");
  co_return Done{};
}

// Chunks enough for every client to own one of each size.
inline Geometry TablesGeometry() {
  return Geometry{.region_bytes = 1024 * 1024, .client_slots = 64, .table_slots = 16, .chunk_bytes = 4096};
}

inline RunOutcome RunTables(fabric::sim::SimOptions options, size_t clients = 2) {
  PoolRun run(std::move(options), TablesGeometry());
  std::vector<size_t> next(clients, 0);
  for (size_t i = 0; i < clients; ++i) {
    const std::vector<std::string> names = {"shared", "own " + std::to_string(i)};
    run.StartClient([&run, names, &mine = next[i]](fabric::Client& client) {
      return CreateAndDrop(client, run, names, mine);
    });
  }
  run.Drive();
  RunOutcome outcome = run.EndOfScripts();
  if (run.problem().empty()) {
    run.StartClient([&](fabric::Client& client) { return PutInOrder(client, run); });
    run.Drive();
  }
  if (run.problem().empty()) {
    run.StartClient([&](fabric::Client& client) { return CheckEverything(client, run); });
    run.Drive();
  }
  outcome.problem = run.problem();
  return outcome;
}

}  // namespace farside::pool
