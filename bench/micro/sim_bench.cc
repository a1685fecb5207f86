// How many verbs per second the simulated fabric carries in its correctness mode: eight clients, mixed trips,
// every freedom of the contract in use. A campaign of checked runs costs little more than this.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "fabric/op.h"
#include "fabric/sim/sim.h"

namespace farside::fabric::sim {
namespace {

constexpr size_t kClients = 8;
constexpr uint64_t kRegionBytes = 64 * 1024;
constexpr int kTripsPerClient = 2000;

struct Bucket {
  std::array<uint64_t, 32> words;  // 256 bytes: four lines
};

FarAddr SomeWord(Random& random) { return FarAddr(NodeId{0}, random.Below(kRegionBytes / 8) * 8); }
FarAddr SomeBucket(Random& random) {
  return FarAddr(NodeId{0}, random.Below(kRegionBytes / sizeof(Bucket)) * sizeof(Bucket));
}

// Half READs of a bucket, the rest WRITEs of a line and atomics, as in a lookup-heavy table.
Task<Done> OneVerbTrips(Client& client, uint64_t seed) {
  Op op(client, OpKind::kSearch);
  Random random(seed);
  const std::array<uint64_t, 8> line{1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < kTripsPerClient; ++i) {
    switch (random.Below(4)) {
      case 0: co_await op.InOrder(Cas(SomeWord(random), 0, 1)); break;
      case 1: co_await op.InOrder(WriteObject(SomeBucket(random), line)); break;
      default: co_await op.InOrder(Read<Bucket>(SomeBucket(random))); break;
    }
  }
  co_return Done{};
}

// Lock and read, then write and unlock: the two trips of most updates, with a second READ or WRITE each.
Task<Done> FourVerbTrips(Client& client, uint64_t seed) {
  Op op(client, OpKind::kUpdate);
  Random random(seed);
  const std::array<uint64_t, 8> line{1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < kTripsPerClient; i += 2) {
    const FarAddr lock = SomeWord(random);
    const FarAddr bucket = SomeBucket(random);
    co_await op.InOrder(Cas(lock, 0, 1), Read<Bucket>(bucket), Read<uint64_t>(lock), Read<uint64_t>(bucket));
    co_await op.InOrder(WriteObject(bucket, line), WriteObject(bucket + kLineBytes, line), Cas(lock, 1, 0),
                        Read<uint64_t>(lock));
  }
  co_return Done{};
}

using Program = Task<Done> (*)(Client& client, uint64_t seed);

void SimVerbs(benchmark::State& state, Program program, Chaos chaos) {
  int64_t verbs = 0;
  uint64_t seed = 0;
  for (auto _ : state) {
    SimFabric world({.seed = ++seed, .region_bytes = {kRegionBytes}, .chaos = chaos});
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<Task<Done>> tasks;
    for (size_t i = 0; i < kClients; ++i) {
      clients.push_back(std::move(*world.Connect()));
      tasks.push_back(program(*clients.back(), seed * kClients + i));
      tasks.back().Start();
    }
    while (world.Step()) continue;
    verbs += static_cast<int64_t>(world.verbs_posted());
    tasks.clear();
    clients.clear();
  }
  state.SetItemsProcessed(verbs);
}

BENCHMARK_CAPTURE(SimVerbs, one_verb_chaos, OneVerbTrips, Chaos{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SimVerbs, four_verbs_chaos, FourVerbTrips, Chaos{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SimVerbs, one_verb_calm, OneVerbTrips, Chaos::Calm())->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(SimVerbs, four_verbs_calm, FourVerbTrips, Chaos::Calm())->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace farside::fabric::sim
