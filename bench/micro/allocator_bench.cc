// The allocator on memory of this process: what a block costs, and what long use does to memory.
//
// MixedSizes is a measurement rather than a race: eight sessions take turns at a shared set of live blocks of
// 16 bytes to 64 KiB, and a few of several chunks, so that another session than their owner frees seven of
// eight. Its counters:
//   claimed / live     bytes of claimed chunks per byte asked for: when most chunks were claimed (peak), and
//                      on average over the second half (steady). Every session has a chunk of every class, so
//                      this depends on the size of chunks more than on anything else
//   allocating trips   trips that an operation has waited for in order to get a block, per 1000 blocks
//   all trips          with trips of maintenance: giving back to others, harvests, releases
//   chunks left        when all is freed and all sessions have left: none. It is an error if fsck finds any
//                      other byte in use than before
// Retiring a block is a plain function, and so costs no trip.
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "fabric/embedded/embedded.h"
#include "pool/memory/allocator.h"
#include "tests/pool/memory/allocator_session.h"
#include "tests/pool/memory/mixed_blocks.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::embedded::EmbeddedFabric;

constexpr uint64_t kLooks = 200;

struct Fragmentation {
  double ratio() const { return static_cast<double>(claimed) / static_cast<double>(live); }
  uint64_t claimed = 0;
  uint64_t live = 0;
};

double PerThousand(uint64_t trips, uint64_t blocks) {
  return 1000.0 * static_cast<double>(trips) / static_cast<double>(blocks);
}

// 64 chunks of 1 MiB, and one client.
struct OneClient {
  const Geometry geometry = GeometryOfChunks(64, 1024 * 1024);
  const std::unique_ptr<EmbeddedFabric> fabric =
      std::move(*EmbeddedFabric::Open({.region_bytes = {geometry.region_bytes}}));
  AllocatorSession session{*fabric, geometry};
};

void TakeAndFree(benchmark::State& state) {
  OneClient one;
  AllocatorSession& session = one.session;
  const auto bytes = static_cast<uint64_t>(state.range(0));
  session.Allocate(bytes);
  for (auto _ : state) {
    const FarAddr block = *session.allocator.TryAllocate(bytes);
    benchmark::DoNotOptimize(block);
    session.allocator.FreeUnpublished(block, bytes);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(TakeAndFree)->Arg(64)->Arg(1024)->Arg(100'000);

// A block in use for a while, retired, stamped and given back; a sync every 1000.
void LiveAndRetire(benchmark::State& state) {
  OneClient one;
  AllocatorSession& session = one.session;
  const auto bytes = static_cast<uint64_t>(state.range(0));
  std::vector<FarAddr> live(10'000);
  for (FarAddr& block : live) block = session.Allocate(bytes);
  const uint64_t trips = session.allocator.stats().trips;
  uint64_t i = 0;
  for (auto _ : state) {
    FarAddr& block = live[i * 7919 % live.size()];
    session.Retire(block, bytes);
    const std::optional<FarAddr> free = session.allocator.TryAllocate(bytes);
    block = free.has_value() ? *free : session.Allocate(bytes);
    if (++i % 1000 == 0) session.Sync();
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["trips / 1000"] = PerThousand(session.allocator.stats().trips - trips, i);
}
BENCHMARK(LiveAndRetire)->Arg(64)->Arg(1024);

void MixedSizes(benchmark::State& state) {
  const auto turns = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    MixedBlocksOptions options;
    options.chunk_bytes = static_cast<uint64_t>(state.range(1)) * 1024;
    MixedBlocks mix(options);
    Fragmentation peak;
    Fragmentation steady;
    while (mix.turns() < turns) {
      mix.Turn();
      if (mix.turns() % (turns / kLooks) != 0) continue;
      const Fragmentation now{mix.ClaimedBytes(), mix.live_bytes()};
      if (now.claimed > peak.claimed) peak = now;
      if (mix.turns() <= turns / 2) continue;
      steady.claimed += now.claimed;
      steady.live += now.live;
    }
    state.counters["peak MB"] = static_cast<double>(peak.live) / 1e6;
    state.counters["peak claimed / live"] = peak.ratio();
    state.counters["steady claimed / live"] = steady.ratio();
    state.counters["allocating trips / 1000"] = PerThousand(mix.TripsOfAllocating(), turns);
    state.counters["all trips / 1000"] = PerThousand(mix.Trips(), turns);
    mix.FreeAllAndLeave();
    const FsckReport after = mix.Check();
    state.counters["chunks left"] = static_cast<double>(after.counts.chunks - after.counts.chunks_free);
    if (!mix.Problem().empty()) state.SkipWithError(mix.Problem().c_str());
    if (after.bytes != mix.before()) state.SkipWithError("memory did not return to what it was");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(MixedSizes)
    ->ArgNames({"blocks", "chunk_kib"})
    ->Args({10'000'000, 1024})
    ->Args({10'000'000, 256})
    ->Args({10'000'000, 64})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// Blocks of 64 bytes; another session than their owner frees seven of eight.
void SmallBlocksOfOthers(benchmark::State& state) {
  constexpr uint64_t kTurns = 10'000'000;
  for (auto _ : state) {
    MixedBlocksOptions options;
    options.smallest = options.largest = 64;
    options.turns_per_extent = 0;
    options.live_blocks = 500'000;
    MixedBlocks mix(options);
    while (mix.turns() < kTurns) mix.Turn();
    const uint64_t warm = mix.TripsOfAllocating();
    const uint64_t all_warm = mix.Trips();
    while (mix.turns() < 2 * kTurns) mix.Turn();
    state.counters["allocating trips / 1000"] = PerThousand(mix.TripsOfAllocating() - warm, kTurns);
    state.counters["all trips / 1000"] = PerThousand(mix.Trips() - all_warm, kTurns);
    if (!mix.Problem().empty()) state.SkipWithError(mix.Problem().c_str());
  }
}
BENCHMARK(SmallBlocksOfOthers)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace farside::pool
