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

Geometry DurableGeometry() {
  Geometry geometry = TablesGeometry();
  geometry.region_bytes = 448 * 1024;
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

Task<Done> MakeAndDrop(fabric::Client& fabric_client, PoolRun& run, std::string own, Told& told) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry());
  for (int i = 0;; ++i) {
    // Tables that stay, one that comes and goes, and one that others make and drop, too.
    const std::string stays = own + " " + std::to_string(i);
    told[own].reset();
    co_await client->Create(op, own);
    told[own] = true;
    co_await client->Create(op, "shared");
    co_await client->Maintain(op);
    if (i < 3) {
      told[stays].reset();
      co_await client->Create(op, stays);
      told[stays] = true;
    }
    told[own].reset();
    co_await client->Drop(op, own);
    told[own] = false;
    co_await client->Drop(op, "shared");
    co_await client->Maintain(op);
  }
}

Task<Done> CheckTold(fabric::Client& fabric_client, PoolRun& run, Told& told) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry());
  for (auto& [name, expected] : told) {
    const Result<bool> there = co_await client->Check(op, name).Outcome();
    if (!there.ok()) {
      run.Problem("table " + name + ": " + there.error().ToString());
    } else if (expected.has_value() && *expected != *there) {
      run.Problem("table " + name + (*there ? " is there again" : " is lost"));
    } else {
      expected = *there;
    }
  }
  co_await client->Leave(op);
  co_return Done{};
}

// Uses what memory there is, over what a cut may have left in use.
Task<Done> UseMemory(fabric::Client& fabric_client, PoolRun& run) {
  fabric::Op op(fabric_client, fabric::OpKind::kMaintenance);
  std::unique_ptr<TablesClient> client = co_await JoinTables(op, fabric_client, run.geometry());
  for (const char* name : {"fill 1", "fill 2", "fill 3"}) co_await client->Create(op, name);
  for (const char* name : {"fill 1", "fill 2", "fill 3"}) co_await client->Drop(op, name);
  co_await client->Leave(op);
  co_return Done{};
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
  run.StartClient([&](fabric::Client& client) { return CheckTold(client, run, told); });
  run.Drive();
  run.StartClient([&](fabric::Client& client) { return PutInOrder(client, run); });
  run.Drive();
  run.StartClient([&](fabric::Client& client) { return UseMemory(client, run); });
  run.Drive();
  run.StartClient([&](fabric::Client& client) { return CheckTold(client, run, told); });
  run.Drive();
  run.StartClient([&](fabric::Client& client) { return CheckEverything(client, run); });
  run.Drive();
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
      for (size_t i = 0; i < kClients; ++i) {
        run.StartClient([&run, &told, own = "own " + std::to_string(i)](fabric::Client& client) {
          return MakeAndDrop(client, run, own, told);
        });
      }
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

}  // namespace farside::pool
