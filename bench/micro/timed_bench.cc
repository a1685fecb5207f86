// How many trips per second of the machine's time the timed fabric carries, with many clients: what a
// simulated measurement costs.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "fabric/op.h"
#include "fabric/sim/timed/timed.h"

namespace farside::fabric::sim {
namespace {

constexpr uint64_t kRegionBytes = 64 * 1024 * 1024;
constexpr uint64_t kTripsOfAll = 200'000;

template <size_t kBytes>
struct Bytes {
  std::array<uint64_t, kBytes / 8> words;
};

FarAddr Somewhere(Random& random) { return FarAddr(NodeId{0}, random.Below(kRegionBytes / 512) * 512); }

template <size_t kBytes>
Task<Done> Reads(Client& client, uint64_t seed, uint64_t trips) {
  Op op(client, OpKind::kSearch);
  Random random(seed);
  for (uint64_t i = 0; i < trips; ++i) co_await op.InOrder(Read<Bytes<kBytes>>(Somewhere(random)));
  co_return Done{};
}

// Lock and read, then write and unlock: the two trips of most updates.
Task<Done> LockedUpdates(Client& client, uint64_t seed, uint64_t trips) {
  Op op(client, OpKind::kUpdate);
  Random random(seed);
  const Bytes<64> line{};
  for (uint64_t i = 0; i < trips; i += 2) {
    const FarAddr bucket = Somewhere(random);
    co_await op.InOrder(Cas(bucket, 0, 1), Read<Bytes<256>>(bucket));
    co_await op.InOrder(WriteObject(bucket + kLineBytes, line), Cas(bucket, 1, 0));
  }
  co_return Done{};
}

using Program = Task<Done> (*)(Client& client, uint64_t seed, uint64_t trips);

void TimedTrips(benchmark::State& state, Program program) {
  const auto clients_at_once = static_cast<uint64_t>(state.range(0));
  int64_t trips = 0;
  for (auto _ : state) {
    const auto world = std::move(*TimedFabric::Open({.region_bytes = {kRegionBytes}, .compute_nodes = 4}));
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Task<Done>> tasks;
    for (uint64_t i = 0; i < clients_at_once; ++i) {
      clients.push_back(std::move(*world->Connect()));
      tasks.push_back(program(*clients.back(), i, kTripsOfAll / clients_at_once));
      tasks.back().Start();
    }
    while (world->Step()) continue;
    trips += static_cast<int64_t>(world->trips_posted());
    tasks.clear();
    clients.clear();
  }
  state.SetItemsProcessed(trips);
}

BENCHMARK_CAPTURE(TimedTrips, read_64, Reads<64>)
    ->Arg(16)
    ->Arg(128)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TimedTrips, read_512, Reads<512>)->Arg(128)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(TimedTrips, locked_updates, LockedUpdates)->Arg(128)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace farside::fabric::sim
