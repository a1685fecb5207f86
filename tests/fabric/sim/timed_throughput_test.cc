// What the timed fabric carries when it is asked for more: as much as the scarcest resource of the model lets
// through.
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/timed_run.h"

namespace farside::fabric::sim {
namespace {

constexpr uint64_t kRegionBytes = 16 * 1024 * 1024;

// Trips of one client, each followed by the next, for ever.
using Forever = std::function<Task<Done>(Client& client, uint64_t number, uint64_t& trips)>;

template <size_t kBytes>
Task<Done> ReadForever(Client& client, uint64_t number, uint64_t& trips) {
  Op op(client, OpKind::kSearch);
  Random random(number);
  std::array<std::byte, kBytes> into;
  while (true) {
    co_await op.InOrder(Read(At(random.Below(kRegionBytes / 4096) * 4096), into));
    ++trips;
  }
}
template <size_t kBytes>
Task<Done> WriteForever(Client& client, uint64_t number, uint64_t& trips) {
  Op op(client, OpKind::kUpdate);
  const std::array<std::byte, kBytes> from{};
  while (true) {
    co_await op.InOrder(Write(Line(number * 64), from));
    ++trips;
  }
}
Task<Done> CasForever(Client& client, uint64_t number, uint64_t& trips) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t value = 0;; ++value) {
    co_await op.InOrder(Cas(Line(number), value, value + 1));
    ++trips;
  }
}
Task<Done> CasOneWordForever(Client& client, uint64_t /*number*/, uint64_t& trips) {
  return CasForever(client, 0, trips);
}
Task<Done> CallForever(Client& client, uint64_t /*number*/, uint64_t& trips) {
  Op op(client, OpKind::kUpdate);
  while (true) {
    co_await op.Call(NodeId{0}, CallId(1, 1), "");
    ++trips;
  }
}

Task<Done> CallAndFlushForever(Client& client, uint64_t /*number*/, uint64_t& trips) {
  Op op(client, OpKind::kUpdate);
  while (true) {
    co_await op.Call(NodeId{0}, CallId(1, 2), "");
    ++trips;
  }
}

struct Measured {
  double per_second = 0;
  std::vector<ResourceUse> uses;

  double Share(const std::string& name) const {
    for (const ResourceUse& use : uses) {
      if (use.name == name) return use.share;
    }
    ADD_FAILURE() << "there is no " << name;
    return 0;
  }
};

Measured Measure(TimedOptions options, uint64_t clients, const Forever& program) {
  constexpr Nanos kWarmUp = 100us;
  constexpr Nanos kLong = 1ms;
  options.region_bytes.assign(options.region_bytes.size(), kRegionBytes);
  TimedRun run(options);
  run.world().calls().Set(CallId(1, 1), [](NodeMemory&, ClientId, std::string_view) {
    return Result<std::string>(std::string());
  });
  run.world().calls().Set(CallId(1, 2), [](NodeMemory& memory, ClientId, std::string_view) {
    memory.Flush(0, 5 * kLineBytes);
    memory.Drain();
    return Result<std::string>(std::string());
  });
  uint64_t trips = 0;
  for (uint64_t i = 0; i < clients; ++i) run.Start(program(run.Connect(), i, trips));
  run.RunUntil(kWarmUp);
  run.world().ResetUses();
  const uint64_t before = trips;
  run.RunUntil(kWarmUp + kLong);
  return {static_cast<double>(trips - before) * (1s / kLong), run.world().Uses()};
}

// Clients enough to saturate anything, on compute nodes enough not to be what binds.
TimedOptions Plenty(Nanos jitter = 0ns) {
  TimedOptions options{.compute_nodes = 8, .model = RoundModel()};
  options.model.jitter = jitter;
  return options;
}
constexpr uint64_t kMany = 400;

// Given one client that waits for each trip. Expect as many as fit into the time.
TEST(TimedThroughput, OneClientIsBoundByLatency) {
  const Measured measured = Measure(Plenty(), 1, ReadForever<64>);
  EXPECT_NEAR(measured.per_second, 1e9 / 2165.36, 2000);
  EXPECT_LT(measured.Share("memory 0 verbs"), 0.02);
}

// Given many clients that READ a line each. Expect the rate of verbs of the memory node's card, and that the
// report says that it is what binds; with jitter too.
TEST(TimedThroughput, SmallReadsAreBoundByTheVerbRate) {
  for (const Nanos jitter : {0ns, 300ns}) {
    const Measured measured = Measure(Plenty(jitter), kMany, ReadForever<64>);
    EXPECT_NEAR(measured.per_second, 40e6, 0.4e6);
    EXPECT_GT(measured.Share("memory 0 verbs"), 0.99);
    EXPECT_LE(measured.Share("memory 0 verbs"), 1.01);
    EXPECT_LT(measured.Share("memory 0 out"), 0.5);
    EXPECT_LT(measured.Share("compute 0 verbs"), 0.2);
  }
}

// Given the same from one compute node. Expect the rate of its card, if that is lower.
TEST(TimedThroughput, OneComputeNodeIsBoundByItsOwnCard) {
  TimedOptions options = Plenty();
  options.compute_nodes = 1;
  options.region_bytes = {1, 1};
  options.model.compute_verbs_per_second = 20'000'000;
  const Measured measured = Measure(options, kMany, ReadForever<64>);
  EXPECT_NEAR(measured.per_second, 20e6, 0.2e6);
  EXPECT_GT(measured.Share("compute 0 verbs"), 0.99);
}

// Given many clients that move 512 bytes. Expect the bandwidth of the wire, out of the memory node for READs
// and into it for WRITEs.
TEST(TimedThroughput, LargerAccessesAreBoundByTheWire) {
  const double most = 100e9 / 8 / (512 + 64);
  const Measured reads = Measure(Plenty(), kMany, ReadForever<512>);
  EXPECT_NEAR(reads.per_second, most, 0.01 * most);
  EXPECT_GT(reads.Share("memory 0 out"), 0.99);
  EXPECT_LT(reads.Share("memory 0 in"), 0.2);
  const Measured writes = Measure(Plenty(), kMany, WriteForever<512>);
  EXPECT_NEAR(writes.per_second, most, 0.01 * most);
  EXPECT_GT(writes.Share("memory 0 in"), 0.99);
  EXPECT_LT(writes.Share("memory 0 out"), 0.2);
}

// Given many clients that CAS, each its own word or all the same. Expect the rate of atomics, and that of one
// word.
TEST(TimedThroughput, AtomicsAreBoundByTheirUnitAndByTheirWord) {
  const Measured own = Measure(Plenty(), kMany, CasForever);
  EXPECT_NEAR(own.per_second, 10e6, 0.1e6);
  EXPECT_GT(own.Share("memory 0 atomics"), 0.99);
  EXPECT_LT(own.Share("memory 0 hottest word"), 0.5);
  const Measured same = Measure(Plenty(), kMany, CasOneWordForever);
  EXPECT_NEAR(same.per_second, 2.5e6, 0.025e6);
  EXPECT_GT(same.Share("memory 0 hottest word"), 0.99);
  EXPECT_LT(same.Share("memory 0 atomics"), 0.3);
}

// Given many clients that Call. Expect that the node's processor answers one after the other.
TEST(TimedThroughput, CallsAreBoundByTheNodesProcessor) {
  const Measured measured = Measure(Plenty(), kMany, CallForever);
  EXPECT_NEAR(measured.per_second, 1e9 / 1500, 0.01e9 / 1500);
  EXPECT_GT(measured.Share("memory 0 processor"), 0.99);
}

// Given the same with handlers that flush five lines and drain. Expect that the time for that counts.
TEST(TimedThroughput, FlushesAreWorkOfTheNodesProcessor) {
  const Measured measured = Measure(Plenty(), kMany, CallAndFlushForever);
  const double each = 1500 + 5 * 30 + 60;
  EXPECT_NEAR(measured.per_second, 1e9 / each, 0.01e9 / each);
  EXPECT_GT(measured.Share("memory 0 processor"), 0.99);
  EXPECT_LE(measured.Share("memory 0 processor"), 1.01);
}

// Given atomics that wait for one hot word, and READs at the same time. Expect that the READs do not wait
// with them.
TEST(TimedThroughput, ReadsDoNotQueueBehindAHotWord) {
  uint64_t atomics = 0;
  const Measured measured = Measure(Plenty(), 200, [&](Client& client, uint64_t number, uint64_t& trips) {
    if (number < 199) return CasOneWordForever(client, number, atomics);
    return ReadForever<64>(client, number, trips);
  });
  EXPECT_GT(measured.per_second, 0.95e9 / 2165);
  EXPECT_GT(measured.Share("memory 0 hottest word"), 0.99);
}

Task<Done> ManyOperations(Client& client, uint64_t number, uint64_t& trips) {
  std::vector<Task<Done>> tasks;
  for (uint64_t i = 0; i < 100; ++i) {
    tasks.push_back(ReadForever<64>(client, number * 100 + i, trips));
    tasks.back().Start();
  }
  co_await std::suspend_always();
  co_return Done{};
}

// Given one client with a hundred operations at once. Expect that its own thread is what binds.
TEST(TimedThroughput, OneClientWithManyOperationsIsBoundByItsThread) {
  const Measured measured = Measure(Plenty(), 1, ManyOperations);
  EXPECT_NEAR(measured.per_second, 1e9 / (70 + 30 + 50), 1e5);
}

Task<Done> ReadEitherNodeForever(Client& client, uint64_t number, uint64_t& trips) {
  Op op(client, OpKind::kSearch);
  std::array<std::byte, 64> into;
  while (true) {
    co_await op.InOrder(Read(Line(number, number % 2), into));
    ++trips;
  }
}

// Given two memory nodes and clients of each. Expect twice as much.
TEST(TimedThroughput, MemoryNodesHaveACardEach) {
  TimedOptions options = Plenty();
  options.region_bytes = {1, 1};
  const Measured measured = Measure(options, 2 * kMany, ReadEitherNodeForever);
  EXPECT_NEAR(measured.per_second, 80e6, 0.8e6);
}

// Given machines that compute and lend memory through one card. Expect that it sends and executes at half the
// rate.
TEST(TimedThroughput, AColocatedMachineSharesItsCard) {
  TimedOptions options = Plenty();
  options.compute_nodes = 1;
  options.colocated = true;
  const Measured measured = Measure(options, kMany, ReadForever<64>);
  EXPECT_NEAR(measured.per_second, 20e6, 0.2e6);
  EXPECT_GT(measured.Share("machine 0 verbs"), 0.99);
}

Task<Done> LookUpForever(Client& client, uint64_t number, uint64_t& lookups) {
  Op op(client, OpKind::kSearch);
  Random random(number);
  std::array<std::byte, 512> bucket;
  std::array<std::byte, 64> block;
  while (true) {
    const auto node = static_cast<uint16_t>(random.Below(3));
    co_await op.InOrder(Read(At(random.Below(kRegionBytes / 4096) * 4096, node), bucket));
    co_await op.InOrder(Read(At(random.Below(kRegionBytes / 4096) * 4096, node), block));
    ++lookups;
  }
}

// Given the cluster of the SHARD paper, as docs/memory-model.md describes it: three machines that compute and
// lend memory, 36 threads each, lookups of a bucket and then a block. Expect the figures that are quoted
// there.
TEST(TimedThroughput, LookupsOnThreeMachinesReachWhatTheDocumentationQuotes) {
  TimedOptions options{.region_bytes = {1, 1, 1}, .compute_nodes = 3, .colocated = true};
  const Measured with_defaults = Measure(options, 108, LookUpForever);
  options.model.memory_verbs_per_second = options.model.compute_verbs_per_second = 21'000'000;
  const Measured with_slower_cards = Measure(options, 108, LookUpForever);
  EXPECT_NEAR(with_defaults.per_second, 23.2e6, 0.2e6);
  EXPECT_LT(with_defaults.Share("machine 0 verbs"), 0.9);
  EXPECT_NEAR(with_slower_cards.per_second, 15.7e6, 0.1e6);
  EXPECT_GT(with_slower_cards.Share("machine 0 verbs"), 0.99);
}

}  // namespace
}  // namespace farside::fabric::sim
