#include "tests/damage/damaged_pool.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/bytes.h"
#include "fabric/sim/sim.h"
#include "pool/region/superblock.h"
#include "store/engines.h"
#include "tests/damage/commands.h"

namespace farside::damage {
namespace {

using fabric::NodeId;
using fabric::sim::SimFabric;

constexpr size_t kNodes = 2;
constexpr uint64_t kRegionBytes = 768 << 10;

fabric::sim::SimOptions WorldOptions() {
  return {.seed = 1,
          .region_bytes = std::vector<uint64_t>(kNodes, kRegionBytes),
          .chaos = fabric::sim::Chaos::Calm(),
          .fault = std::nullopt};
}

// A cluster whose nodes have the handlers of all engines.
struct World {
  World() { store::RegisterHandlers(fabric.calls()); }
  SimFabric fabric{WorldOptions()};
};

void CopyInto(const Regions& regions, SimFabric& world) {
  for (size_t node = 0; node < regions.size(); ++node)
    std::copy(regions[node].begin(), regions[node].end(), world.memory(static_cast<NodeId>(node)).begin());
}

void DoWhatIsDue(std::vector<LaterDamage>& later, SimFabric& world) {
  std::erase_if(later, [&world](const LaterDamage& one) {
    if (world.verbs_posted() < one.verbs) return false;
    std::byte* const at = world.memory(static_cast<NodeId>(one.node)).data() + one.offset;
    StoreU64(at, one.value + (one.adds ? LoadU64(at) : 0));
    return true;
  });
}

}  // namespace

DamagedPool::DamagedPool(std::string_view engine, const index::OptionMap& options)
    : engine_(*store::MakeEngine(engine, options)) {
  World world;
  for (size_t node = 0; node < kNodes; ++node) {
    const auto made =
        pool::FormatVolatile(world.fabric.memory(static_cast<NodeId>(node)),
                             {.client_slots = 8, .table_slots = 4, .chunk_bytes = 4096}, {1, node});
    if (!made.ok()) std::abort();
  }
  Findings findings;
  CommandClient client(world.fabric, engine_, findings);
  if (client.Open()) {
    client.Fill(content_);
    client.LeavePool();
  }
  if (findings.refused > 0 || !findings.wrong.empty()) {
    fmt::print(stderr, "the undamaged pool of {} could not be made: {}\n", engine, findings.last_error);
    std::abort();
  }
  for (size_t node = 0; node < kNodes; ++node) {
    const std::span<const std::byte> bytes = world.fabric.memory(static_cast<NodeId>(node));
    regions_.emplace_back(bytes.begin(), bytes.end());
  }
  targets_ = std::make_unique<Targets>(regions_);
}

Findings DamagedPool::Try(uint64_t seed) const {
  Random random(seed);
  Regions regions = regions_;
  std::string damage = Damage(regions, *targets_, random);
  Findings findings = TryWith(regions);
  findings.damage = std::move(damage);
  return findings;
}

// As commands of a command line do it, each client leaves before the next one comes, or dies if it cannot.
Findings DamagedPool::TryWith(const Regions& regions, Damaged damaged, std::vector<LaterDamage> later) const {
  Findings findings;
  World world;
  CopyInto(regions, world.fabric);
  Content content = content_;
  const auto meddle = [&] { DoWhatIsDue(later, world.fabric); };
  {
    CommandClient reader(world.fabric, engine_, findings, damaged, meddle);
    if (reader.Open()) {
      reader.Look(content);
      reader.Check();
      reader.LeavePool();
    }
  }
  {
    CommandClient writer(world.fabric, engine_, findings, damaged, meddle);
    if (writer.Open()) {
      writer.Change(content);
      writer.Look(content);
      writer.LeavePool();
    }
  }
  CommandClient dropper(world.fabric, engine_, findings, damaged, meddle);
  if (dropper.Open()) {
    dropper.DropTable();
    dropper.LeavePool();
  }
  return findings;
}

std::vector<DamagedPool> PoolsOf(std::string_view engine) {
  std::vector<index::OptionMap> variants = (*store::MakeEngine(engine, {}))->stress_options();
  variants.emplace_back();
  std::vector<DamagedPool> pools;
  for (const index::OptionMap& options : variants) pools.emplace_back(engine, options);
  return pools;
}

}  // namespace farside::damage
