#include "tests/pool/pool_run.h"

#include <algorithm>
#include <cstdint>

namespace farside::pool {

namespace {

constexpr Nanos kTestSleep = std::chrono::microseconds(1500);  // of clients that fall asleep; past any lease

}  // namespace

Geometry SmallGeometry(uint32_t client_slots, uint32_t table_slots) {
  return Geometry{.region_bytes = 256 * 1024,
                  .client_slots = client_slots,
                  .table_slots = table_slots,
                  .chunk_bytes = 16 * 1024};
}

fabric::sim::SimOptions PoolChaos(uint64_t seed, bool faults) {
  fabric::sim::SimOptions options;
  options.seed = seed;
  options.chaos = fabric::sim::Chaos::ForSeed(seed, faults);
  options.chaos.longest_delay = std::min(options.chaos.longest_delay, Nanos(8000));
  options.chaos.longest_sleep = kTestSleep;
  return options;
}

fabric::sim::SimOptions PoolCalm() {
  fabric::sim::SimOptions options;
  options.chaos = fabric::sim::Chaos::Calm();
  options.chaos.longest_sleep = kTestSleep;
  return options;
}

Task<Done> ReleaseDeadSlots(Membership& member) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  const Nanos enough = member.client().Now() + 3 * member.options().lease;
  while (member.client().Now() < enough) {
    const uint64_t known = member.known_epoch();
    co_await member.Sync(op, known, known, true);
    RegistryView view = co_await member.LookAround(op);
    for (Owner dead : view.fenced) co_await member.ReleaseSlot(op, dead);
    co_await op.Pause(member.options().lease / 4);
  }
  co_return Done{};
}

}  // namespace farside::pool
