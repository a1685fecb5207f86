#include "tests/pool/region/power_cut_scenarios.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "pool/catalog/catalog.h"
#include "pool/client.h"
#include "pool/durability.h"
#include "pool/fsck/fsck.h"
#include "pool/memory/carving.h"
#include "pool/region/node_identity.h"
#include "pool/region/recover.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::sim::SimFabric;

constexpr NodeId kCut{0};   // the node that loses its power
constexpr NodeId kHome{1};  // that of the catalog entry
constexpr Nanos kLease = std::chrono::milliseconds(5);
constexpr Geometry kGeometry{
    .region_bytes = 128 * 1024, .client_slots = 8, .table_slots = 4, .chunk_bytes = 4096, .durable = true};

fabric::sim::SimOptions TwoNodes(uint64_t seed = 1) {
  fabric::sim::SimOptions options;
  options.seed = seed;
  options.region_bytes = {kGeometry.region_bytes, kGeometry.region_bytes};
  options.durable = true;
  options.chaos = fabric::sim::Chaos::Calm();
  return options;
}

Task<std::unique_ptr<PoolClient>> Join(Op& op, fabric::Client& client) {
  ClientOptions options;
  options.lease.lease = kLease;
  const std::vector<Geometry> geometries(2, kGeometry);
  std::unique_ptr<PoolClient> joined = co_await PoolClient::Join(op, client, geometries, options);
  co_return joined;
}

// A client that stops when the roots of its table are durable.
struct Maker {
  explicit Maker(SimFabric& world) : client(std::move(*world.Connect())) {}

  Task<Done> Make() {
    Op op(*client, OpKind::kMaintenance);
    pool = co_await Join(op, *client);
    TableSpec spec;
    spec.name = "users";
    spec.engine = "blocks";
    spec.nodes = {kCut, kHome};
    Catalog catalog(pool->member(kHome));
    const PoolClient::Pin pin = pool->Begin();
    const Catalog::MakeRoots make = [this](Op& making, TableInfo) { return MakeRoots(making); };
    co_await catalog.Create(op, std::move(spec), make);
    co_return Done{};
  }

  Task<std::vector<FarAddr>> MakeRoots(Op& op) {
    std::vector<FarAddr> roots;
    for (const NodeId node : {kCut, kHome}) {
      const FarAddr root = co_await pool->allocator(node).Allocate(op, kLine);
      std::vector<ByteRange> ranges(1);
      ranges[0] = {root.offset, kLine};
      co_await MakeDurable(op, node, std::move(ranges));
      roots.push_back(root);
    }
    made_roots = true;
    while (!may_go_on) co_await op.Pause(Nanos(1000));
    co_return roots;
  }

  Task<Done> Drop() {
    Op op(*client, OpKind::kMaintenance);
    Catalog catalog(pool->member(kHome));
    const Catalog::WaitForGrace wait = [this](Op& waiting) { return Nothing(waiting); };
    const Catalog::FreeTable free = [this](Op& freeing, TableInfo) { return Nothing(freeing); };
    co_await catalog.Drop(op, "users", wait, free);
    co_return Done{};
  }
  Task<Done> Nothing(Op& /*op*/) { co_return Done{}; }

  std::unique_ptr<fabric::Client> client;
  std::unique_ptr<PoolClient> pool;
  bool made_roots = false;
  bool may_go_on = false;
};

// A client that puts in order what it finds.
struct Repairer {
  explicit Repairer(SimFabric& world) : client(std::move(*world.Connect())) {}

  Task<Done> Repair() {
    Op op(*client, OpKind::kMaintenance);
    pool = co_await Join(op, *client);
    pool->set_walk([this](Op& walking, Reach& reach) { return Walk(walking, reach); });
    const Nanos enough = client->Now() + 8 * kLease;
    const auto has_swept = [this] { return pool->allocator(kCut).stats().blocks_swept > 0; };
    while (client->Now() < enough && !(until_swept && has_swept())) {
      co_await pool->Maintain(op);
      co_await op.Pause(kLease / 16);
    }
    co_return Done{};
  }
  Task<Done> Walk(Op& op, Reach& reach) {
    ++walks;
    for (const NodeId node : {kCut, kHome}) {
      Catalog catalog(pool->member(node));
      const std::vector<TableInfo> tables = co_await catalog.TablesToWalk(op);
      for (const TableInfo& table : tables) {
        for (const FarAddr root : table.roots) reach.Mark(root, kLine);
      }
    }
    co_return Done{};
  }
  Task<FarAddr> Take() {
    Op op(*client, OpKind::kMaintenance);
    const FarAddr block = co_await pool->allocator(kCut).Allocate(op, kLine);
    co_return block;
  }
  Task<std::string> Check() {
    Op op(*client, OpKind::kMaintenance);
    Catalog catalog(pool->member(kHome));
    const Result<TableInfo> table = co_await catalog.Open(op, "users").Outcome();
    if (!table.ok()) co_return table.error().ToString();
    Reached reached;
    reached.BeginTable("users");
    for (const FarAddr root : table->roots) reached.Mark(root, kLine);
    FsckOptions options;
    options.self = pool->member(kCut).self();
    const FsckReport report = co_await Fsck(op, kCut, kGeometry, reached, options);
    for (const Finding& finding : report.findings) {
      // The simulated region has no superblock.
      const bool superblock = finding.what.rfind("the superblock", 0) == 0;
      if (finding.severity != Severity::kNote && !superblock) co_return finding.what;
    }
    co_return std::string();
  }

  std::unique_ptr<fabric::Client> client;
  std::unique_ptr<PoolClient> pool;
  int walks = 0;
  bool until_swept = false;  // repairs no longer than that
};

}  // namespace

namespace {

void MakeDurableWorld(SimFabric& world) {
  ServeDurability(world.calls());
  world.set_on_power_up([](NodeId, std::span<std::byte> survived) { Recover(survived, kGeometry); });
}

TableState StateOfFirstTable(SimFabric& world) {
  return TableWord(LoadU64(world.memory(kHome).data() + kGeometry.table_entry(0))).state();
}

Task<Done> JoinAndOpen(fabric::Client& client, std::unique_ptr<PoolClient>& pool) {
  Op op(client, OpKind::kMaintenance);
  pool = co_await Join(op, client);
  Catalog catalog(pool->member(kHome));
  co_await catalog.Open(op, "users");
  co_return Done{};
}

Task<Done> ClaimBoth(fabric::Client& client, std::vector<FoundNode> nodes) {
  Op op(client, OpKind::kMaintenance);
  co_await ClaimIdentities(op, std::move(nodes));
  co_return Done{};
}

}  // namespace

std::string ATableIsOpenedBeforeItsMakerHasMadeItDurable(uint64_t seed) {
  SimFabric world(TwoNodes(seed));
  MakeDurableWorld(world);
  Maker maker(world);
  maker.may_go_on = true;
  Task<Done> making = maker.Make();
  making.Start();
  while (StateOfFirstTable(world) != TableState::kLive && world.Step()) continue;
  if (making.done()) return "its maker has not died in time";
  world.Crash(maker.client->id());
  const std::unique_ptr<fabric::Client> client = std::move(*world.Connect());
  std::unique_ptr<PoolClient> pool;
  const Result<Done> opened = fabric::Run(*client, JoinAndOpen(*client, pool));
  if (!opened.ok()) return opened.error().ToString();
  world.CutPower(kHome);
  return StateOfFirstTable(world) == TableState::kLive ? "" : "the table is lost";
}

std::string ADropIsSeenBeforeItIsDurable(uint64_t seed) {
  SimFabric world(TwoNodes(seed));
  MakeDurableWorld(world);
  Maker maker(world);
  maker.may_go_on = true;
  if (const Result<Done> made = fabric::Run(*maker.client, maker.Make()); !made.ok())
    return made.error().ToString();
  Task<Done> dropping = maker.Drop();
  dropping.Start();
  while (StateOfFirstTable(world) != TableState::kDropping && world.Step()) continue;
  if (dropping.done()) return "its dropper has not died in time";
  world.Crash(maker.client->id());
  const std::unique_ptr<fabric::Client> client = std::move(*world.Connect());
  std::unique_ptr<PoolClient> pool;
  const Result<Done> opened = fabric::Run(*client, JoinAndOpen(*client, pool));
  if (opened.ok() || opened.error().code() != ErrorCode::kNotFound) return "the table is not gone";
  world.CutPower(kHome);
  return StateOfFirstTable(world) == TableState::kLive ? "the table is there again" : "";
}

std::string AChunkIsTakenOverBeforeItIsDurable(uint64_t seed) {
  SimFabric world(TwoNodes(seed));
  MakeDurableWorld(world);
  const Carving carving(kCut, kGeometry);
  const auto word_of = [&](uint64_t chunk) {
    return ChunkWord(LoadU64(world.memory(kCut).data() + kGeometry.chunk_word(chunk)));
  };
  // The first one that is cut into blocks, if there is one.
  const auto claimed = [&] {
    std::optional<uint64_t> found;
    for (uint64_t chunk = 0; chunk < kGeometry.chunks() && !found.has_value(); ++chunk) {
      if (word_of(chunk).state() == ChunkState::kBlocks) found = chunk;
    }
    return found;
  };
  Maker claimer(world);
  Task<Done> claiming = claimer.Make();
  claiming.Start();
  while (!claimed().has_value() && !claimer.made_roots && world.Step()) continue;
  if (!claimed().has_value() || claimer.made_roots) return "the claimer has not died in time";
  world.Crash(claimer.client->id());
  Repairer heir(world);
  heir.until_swept = true;
  if (const Result<Done> repaired = fabric::Run(*heir.client, heir.Repair()); !repaired.ok())
    return repaired.error().ToString();
  const Result<FarAddr> block = fabric::Run(*heir.client, heir.Take());
  if (!block.ok()) return block.error().ToString();
  if (carving.ChunkOf(*block) != claimed()) return "the chunk was not taken over";
  world.CutPower(kCut);
  return word_of(*carving.ChunkOf(*block)).state() == ChunkState::kBlocks ? ""
                                                                          : "a block stands in a free chunk";
}

std::string PowerIsCutWhenARegionWasOpened() {
  std::vector<std::byte> disk(kGeometry.region_bytes);
  std::vector<std::byte> memory = disk;
  const TableWord live(TableState::kLive, 1);
  StoreU64(memory.data() + kGeometry.table_entry(0), live.word());
  StoreU64(memory.data() + kGeometry.chunk_word(0), ChunkWord(ChunkState::kBlocks, 0, Owner(1, 1)).word());
  const auto persist = [&](uint64_t offset, uint64_t size) {
    std::copy_n(memory.begin() + static_cast<ptrdiff_t>(offset), size,
                disk.begin() + static_cast<ptrdiff_t>(offset));
    return OkStatus();
  };
  if (Status opened = Recover(memory, persist, kGeometry); !opened.ok()) return opened.error().ToString();
  return disk == memory ? "" : "what was found is lost";
}

std::string NodesLosePowerWhenTheirPoolWasOpened(uint64_t seed) {
  SimFabric world(TwoNodes(seed));
  MakeDurableWorld(world);
  std::vector<FoundNode> nodes = {{"a", true, RegionId{1, 2}, NodeIdentity(), true},
                                  {"b", true, RegionId{3, 4}, NodeIdentity(), true}};
  const std::unique_ptr<fabric::Client> client = std::move(*world.Connect());
  const Result<Done> claimed = fabric::Run(*client, ClaimBoth(*client, nodes));
  if (!claimed.ok()) return claimed.error().ToString();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    world.CutPower(node);
    nodes[i].identity = NodeIdentity(LoadU64(world.memory(node).data() + kIdentityOffset));
    if (nodes[i].identity.empty()) return nodes[i].name + " belongs to no pool";
  }
  const Status fits = CheckIdentities(nodes);
  return fits.ok() ? "" : fits.error().ToString();
}

std::string ATableIsMadeWhileANodeOfItLosesPower() {
  SimFabric world(TwoNodes());
  MakeDurableWorld(world);
  Maker maker(world);
  Task<Done> making = maker.Make();
  making.Start();
  while (!maker.made_roots && world.Step()) continue;
  world.CutPower(kCut);
  Repairer repairer(world);
  Task<Done> repairing = repairer.Repair();
  repairing.Start();
  // It has walked, or tried to, and waits.
  const Nanos enough = world.Now() + kLease / 2;
  while (world.Now() < enough && world.Step()) continue;
  if (repairer.walks == 0) return "there was no walk";
  maker.may_go_on = true;
  while (!making.done() && world.Step()) continue;
  if (const Result<Done> made = making.TakeResult(); !made.ok()) return made.error().ToString();
  world.Crash(maker.client->id());
  while (!repairing.done() && world.Step()) continue;
  if (const Result<Done> repaired = repairing.TakeResult(); !repaired.ok())
    return repaired.error().ToString();
  const Result<std::string> problem = fabric::Run(*repairer.client, repairer.Check());
  return problem.ok() ? *problem : problem.error().ToString();
}

}  // namespace farside::pool
