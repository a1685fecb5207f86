#include "tests/pool/catalog/tables_run.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pool/durability.h"

namespace farside::pool {

namespace {

// Sizes that differ from table to table; one is an extent now and then.
uint64_t SizeOf(const TableInfo& table, size_t block) {
  if (block == 0 && table.incarnation % 3 == 0) return 20'000;
  return 64 * (1 + (table.incarnation * 7 + block * 5) % 20);
}

std::vector<uint64_t> ContentOf(const TableInfo& table, const TableRoot& root, size_t block) {
  std::vector<uint64_t> words(root.bytes[block] / sizeof(uint64_t));
  for (size_t i = 0; i < words.size(); ++i) words[i] = root.blocks[block] * 31 + table.incarnation * 7 + i;
  return words;
}

// A table links nothing that is not durable (durable/6).
Task<Done> FillDurably(fabric::Op& op, const TableInfo& table, const TableRoot& root, fabric::FarAddr at) {
  std::vector<ByteRange> ranges = {{at.offset, sizeof(root)}};
  for (size_t i = 0; i < kBlocksOfATable; ++i) {
    const std::vector<uint64_t> words = ContentOf(table, root, i);
    const fabric::FarAddr block(at.node, root.blocks[i]);
    co_await op.InOrder(fabric::Write(block, std::as_bytes(std::span(words))));
    ranges.push_back({root.blocks[i], root.bytes[i]});
  }
  co_await MakeDurable(op, at.node, std::move(ranges));
  co_return Done{};
}

}  // namespace

namespace {

Task<Done> CheckPart(fabric::Op& op, const TableInfo& table, fabric::FarAddr at) {
  const TableRoot root = co_await op.InOrder(fabric::Read<TableRoot>(at));
  for (size_t i = 0; i < kBlocksOfATable; ++i) {
    if (root.bytes[i] != SizeOf(table, i)) co_return Error(ErrorCode::kCorrupt, "its root is another's");
    const std::vector<uint64_t> words = ContentOf(table, root, i);
    std::vector<uint64_t> found(words.size());
    const fabric::FarAddr block(at.node, root.blocks[i]);
    co_await op.InOrder(fabric::Read(block, std::as_writable_bytes(std::span(found))));
    if (found != words) co_return Error(ErrorCode::kCorrupt, "a block of it is another's");
  }
  co_return Done{};
}

Task<fabric::FarAddr> MakePart(fabric::Op& op, PoolClient& client, const TableInfo& table,
                               fabric::NodeId node) {
  Allocator& allocator = client.allocator(node);
  TableRoot root{};
  for (size_t i = 0; i < kBlocksOfATable; ++i) {
    const fabric::FarAddr block = co_await allocator.Allocate(op, SizeOf(table, i));
    root.blocks[i] = block.offset;
    root.bytes[i] = SizeOf(table, i);
  }
  const fabric::FarAddr at = co_await allocator.Allocate(op, sizeof(root));
  co_await op.InOrder(fabric::WriteObject(at, root));
  if (client.member(node).geometry().durable) co_await FillDurably(op, table, root, at);
  co_return at;
}

}  // namespace

Task<Done> CheckTable(fabric::Op& op, TableInfo table) {
  for (const fabric::FarAddr at : table.roots) co_await CheckPart(op, table, at);
  co_return Done{};
}

Task<std::vector<fabric::FarAddr>> MakeTable(fabric::Op& op, PoolClient& client, TableInfo table) {
  std::vector<fabric::FarAddr> roots;
  for (const fabric::NodeId node : table.nodes) {
    const fabric::FarAddr root = co_await MakePart(op, client, table, node);
    roots.push_back(root);
  }
  co_return roots;
}

Task<Done> FreeBlocks(fabric::Op& op, PoolClient& client, TableInfo table) {
  const PoolClient::Pin pin = client.Begin();
  for (const fabric::FarAddr at : table.roots) {
    const TableRoot root = co_await op.InOrder(fabric::Read<TableRoot>(at));
    Allocator& allocator = client.allocator(at.node);
    for (size_t i = 0; i < kBlocksOfATable; ++i)
      allocator.Retire(fabric::FarAddr(at.node, root.blocks[i]), root.bytes[i], pin.epoch(at.node));
    allocator.Retire(at, sizeof(root), pin.epoch(at.node));
  }
  co_return Done{};
}

Task<std::unique_ptr<TablesClient>> JoinTables(fabric::Op& op, fabric::Client& client, Geometry geometry,
                                               size_t nodes) {
  ClientOptions options;
  options.lease.lease = kTestLease;
  const std::vector<Geometry> geometries(nodes, geometry);
  std::unique_ptr<PoolClient> joined = co_await PoolClient::Join(op, client, geometries, options);
  co_return std::make_unique<TablesClient>(std::move(joined));
}

namespace {

Task<Done> CreateAndDrop(fabric::Client& fabric_client, PoolRun& run, std::vector<std::string> names,
                         size_t& next) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry(), run.nodes());
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

}  // namespace

Task<Done> PutInOrder(fabric::Client& fabric_client, PoolRun& run) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry(), run.nodes());
  co_await client->Create(op, "last");
  const Nanos enough = fabric_client.Now() + 6 * kTestLease;
  while (fabric_client.Now() < enough) {
    co_await client->Maintain(op);
    co_await op.Pause(kTestLease / 8);
  }
  co_await client->Leave(op);
  co_return Done{};
}

namespace {

Task<Done> CheckNode(fabric::Op& op, PoolRun& run, fabric::NodeId node, const Reached& reached) {
  FsckReport report = co_await Fsck(op, node, run.geometry(), reached, FsckOptions());
  for (const Finding& finding : report.findings) {
    // The simulated region has no superblock. A note is, say, the lock of a client that died, which is taken
    // over when needed.
    const bool superblock = finding.what.rfind("the superblock", 0) == 0;
    if (finding.severity != Severity::kNote && !superblock) run.Problem(finding.what);
  }
  if (report.bytes.held + report.bytes.abandoned + report.bytes.leaked + report.bytes.damaged > 0) {
    run.Problem("some bytes are neither reachable nor free");
  }
  if (report.bytes.Total() != run.geometry().region_bytes) run.Problem("some bytes are not counted");
  co_return Done{};
}

}  // namespace

Task<Done> CheckEverything(fabric::Client& fabric_client, PoolRun& run) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  Reached reached;
  size_t tables_live = 0;
  for (const fabric::NodeId node : AllNodes(run.nodes())) {
    Membership member(fabric_client, node, run.geometry(), LeaseOptions{.lease = kTestLease});
    Catalog catalog(member);
    std::vector<TableInfo> tables = co_await catalog.List(op);
    tables_live += tables.size();
    co_await WalkTables(op, std::move(tables), reached);
  }
  if (tables_live == 0) run.Problem("the last table is not there");
  for (const fabric::NodeId node : AllNodes(run.nodes())) co_await CheckNode(op, run, node, reached);
  co_return Done{};
}

RunOutcome RunTables(fabric::sim::SimOptions options, size_t clients) {
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
