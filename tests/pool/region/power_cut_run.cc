#include "tests/pool/region/power_cut_run.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "pool/catalog/layout.h"
#include "pool/durability.h"
#include "pool/region/recover.h"
#include "tests/pool/catalog/tables_run.h"

namespace farside::pool {
namespace {

constexpr int kCuts = 3;
constexpr uint64_t kMostSteps = 6000;
constexpr size_t kClients = 3;

// So small that what a cut leaves in use is used again soon; or with room for what clients have that died.
constexpr uint64_t kSmallRegion = 448 * 1024;
constexpr uint64_t kLargeRegion = 1024 * 1024;

Geometry DurableGeometry(uint64_t region_bytes = kSmallRegion) {
  Geometry geometry = TablesGeometry();
  geometry.region_bytes = region_bytes;
  geometry.client_slots = 16;
  geometry.table_slots = 32;
  geometry.durable = true;
  return geometry;
}

// What the node's memory holds after a power cut.
class Survivor {
 public:
  Survivor(PoolRun& run, std::vector<std::byte> bytes, Random random)
      : run_(run), geometry_(run.geometry()), bytes_(std::move(bytes)), random_(random) {
    std::copy(bytes_.begin(), bytes_.end(), Memory().begin());
    run.world().calls().Set(kMakeDurable, [this](fabric::NodeMemory& memory, fabric::ClientId,
                                                 std::string_view request) { return Keep(memory, request); });
  }

  // A cache writes back what it likes.
  void Evict() {
    switch (random_.Below(4)) {
      case 0: return Keep(geometry_.chunk_word(random_.Below(geometry_.chunks())));
      case 1: return Keep(geometry_.table_entry(static_cast<uint32_t>(random_.Below(geometry_.table_slots))));
      case 2: return Keep(geometry_.chunk(random_.Below(geometry_.chunks())));  // the bitmap, if it has one
      default: return Keep(random_.Below(geometry_.region_bytes / 8) * 8);
    }
  }

  // The power is cut: of what is not durable, any word may have been on its way.
  std::vector<std::byte> Cut() {
    const uint64_t quarters = random_.Below(5);
    for (uint64_t at = 0; at < geometry_.region_bytes; at += 8) {
      if (random_.Below(4) < quarters) Keep(at);
    }
    return std::move(bytes_);
  }

 private:
  std::span<std::byte> Memory() { return run_.world().memory(kTablesNode); }
  void Keep(uint64_t at) { StoreU64(bytes_.data() + at, LoadU64(Memory().data() + at)); }
  Result<std::string> Keep(fabric::NodeMemory& memory, std::string_view request) {
    for (size_t i = 0; i < request.size(); i += sizeof(ByteRange)) {
      ByteRange range;
      std::memcpy(&range, request.data() + i, sizeof(range));
      const uint64_t end = RoundUp(range.offset + range.size, kLine);
      for (uint64_t at = range.offset / kLine * kLine; at < end; at += 8)
        StoreU64(bytes_.data() + at, memory.Load(at));
    }
    return std::string();
  }

  PoolRun& run_;
  const Geometry& geometry_;
  std::vector<std::byte> bytes_;
  Random random_;
};

// What clients were told of tables. Nothing while a change is under way.
using Told = std::map<std::string, std::optional<bool>>;

// What dead clients had is there again when it was swept.
Task<Done> CreateWithPatience(fabric::Op& op, TablesClient& client, std::string name) {
  while (true) {
    const Result<Done> created = co_await client.Create(op, name).Outcome();
    if (created.ok() || created.error().code() != ErrorCode::kOutOfMemory) co_return created;
    co_await client.Maintain(op);
    co_await op.Pause(kTestLease / 8);
  }
}

Task<Done> MakeAndDrop(fabric::Client& fabric_client, PoolRun& run, std::string own, Told& told) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry(), run.nodes());
  for (int i = 0;; ++i) {
    // Tables that stay, one that comes and goes, and one that others make and drop, too.
    const std::string stays = own + " " + std::to_string(i);
    told[own].reset();
    co_await CreateWithPatience(op, *client, own);
    told[own] = true;
    co_await CreateWithPatience(op, *client, "shared");
    co_await client->Maintain(op);
    if (i < 3) {
      told[stays].reset();
      co_await CreateWithPatience(op, *client, stays);
      told[stays] = true;
    }
    told[own].reset();
    co_await client->Drop(op, own);
    told[own] = false;
    co_await client->Drop(op, "shared");
    co_await client->Maintain(op);
  }
}

// What was under way may still happen, until its client is fenced; after that (`settled`), what is found
// stays.
Task<Done> CheckTold(fabric::Client& fabric_client, PoolRun& run, Told& told, bool settled) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry(), run.nodes());
  for (auto& [name, expected] : told) {
    const Result<bool> there = co_await client->Check(op, name).Outcome();
    if (!there.ok()) {
      run.Problem("table " + name + ": " + there.error().ToString());
    } else if (expected.has_value() && *expected != *there) {
      run.Problem("table " + name + (*there ? " is there again" : " is lost"));
    } else if (settled) {
      expected = *there;
    }
  }
  co_await client->Leave(op);
  co_return Done{};
}

// Uses what memory there is, over what a cut may have left in use.
Task<Done> UseMemory(fabric::Client& fabric_client, PoolRun& run) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry(), run.nodes());
  for (const char* name : {"fill 1", "fill 2", "fill 3"}) co_await client->Create(op, name);
  for (const char* name : {"fill 1", "fill 2", "fill 3"}) co_await client->Drop(op, name);
  co_await client->Leave(op);
  co_return Done{};
}

// Puts the pool in order, and uses it.
void CheckPool(PoolRun& run, Told& told) {
  run.StartClient([&](fabric::Client& client) { return CheckTold(client, run, told, /*settled=*/false); });
  run.Drive();
  run.StartClient([&](fabric::Client& client) { return PutInOrder(client, run); });
  run.Drive();
  run.StartClient([&](fabric::Client& client) { return CheckTold(client, run, told, /*settled=*/true); });
  run.Drive();
  run.StartClient([&](fabric::Client& client) { return UseMemory(client, run); });
  run.Drive();
  run.StartClient([&](fabric::Client& client) { return CheckTold(client, run, told, /*settled=*/true); });
  run.Drive();
  run.StartClient([&](fabric::Client& client) { return CheckEverything(client, run); });
  run.Drive();
}

void StartClients(PoolRun& run, Told& told) {
  for (size_t i = 0; i < kClients; ++i) {
    run.StartClient([&run, &told, own = "own " + std::to_string(i)](fabric::Client& client) {
      return MakeAndDrop(client, run, own, told);
    });
  }
}

// What is wrong with the pool in these bytes; when all is well, they are as its clients left them.
std::string CheckOpening(std::vector<std::byte>& bytes, Told& told) {
  const Geometry geometry = DurableGeometry();
  Recover(bytes, geometry);
  std::vector<std::byte> again = bytes;
  Recover(again, geometry);
  if (again != bytes) return "a second recovery changes what the first has made";
  PoolRun run(PoolCalm(), geometry);
  const Survivor survivor(run, bytes, Random(1));
  CheckPool(run, told);
  const std::span<std::byte> memory = run.world().memory(kTablesNode);
  bytes.assign(memory.begin(), memory.end());
  return run.problem();
}

}  // namespace

std::string RunPowerCuts(uint64_t seed) {
  Random random(seed);
  Told told;
  std::vector<std::byte> bytes(DurableGeometry().region_bytes);
  for (int cut = 0; cut < kCuts; ++cut) {
    {
      PoolRun run(PoolChaos(random.Next(), /*faults=*/seed % 2 == 0), DurableGeometry());
      Survivor survivor(run, std::move(bytes), random.Fork(1));
      StartClients(run, told);
      const uint64_t steps = random.Below(kMostSteps);
      uint64_t step = 0;
      run.Drive([&] {
        survivor.Evict();
        return ++step > steps;
      });
      if (!run.problem().empty()) return "before the cut: " + run.problem();
      bytes = survivor.Cut();
    }
    const std::string problem = CheckOpening(bytes, told);
    if (!problem.empty()) return "cut " + std::to_string(cut) + ": " + problem;
  }
  return "";
}

std::string RunPowerCutsOfNodes(uint64_t seed) {
  Random random(seed);
  Told told;
  fabric::sim::SimOptions options = PoolChaos(random.Next(), /*faults=*/true);
  options.durable = true;
  options.chaos.lose_completion = std::max<uint32_t>(options.chaos.lose_completion, 1);
  const Geometry geometry = DurableGeometry(kLargeRegion);
  PoolRun run(std::move(options), geometry, /*nodes=*/2);
  ServeDurability(run.world().calls());
  run.world().set_on_power_up(
      [geometry](fabric::NodeId, std::span<std::byte> survived) { Recover(survived, geometry); });
  StartClients(run, told);
  uint64_t steps = random.Below(kMostSteps);
  int cuts = 0;
  run.Drive([&] {
    if (steps-- > 0) return false;
    if (cuts++ == kCuts) return true;
    run.world().CutPower(static_cast<fabric::NodeId>(random.Below(2)));
    steps = random.Below(kMostSteps);
    return false;
  });
  if (!run.problem().empty()) return "before the last cut: " + run.problem();
  run.world().StopFaults();
  CheckPool(run, told);
  return run.problem();
}

}  // namespace farside::pool
