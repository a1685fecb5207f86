// What the benchmarks of fabrics over memory have in common: chains of trips over a region that no cache
// holds.
//
// Every operation is a chain, as in an index: the next address depends on the bytes just read. `depth` is the
// number of chains at once; with one, a trip pays for the whole cache miss.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "fabric/fabric.h"
#include "fabric/op.h"
#include "fabric/run.h"

namespace farside::fabric {

inline constexpr uint64_t kRegionBytes = uint64_t{1} << 30;
inline constexpr int64_t kTripsPerTask = 1000;

template <size_t kBytes>
struct Block {
  std::array<uint64_t, kBytes / 8> words;
};

// Random offsets of whole blocks, the next of which depends on the last word read (always zero here, but the
// processor does not know).
class Walk {
 public:
  Walk(uint64_t seed, uint64_t block_bytes) : random_(seed), block_bytes_(block_bytes) {}
  uint64_t Next(uint64_t word_read) {
    return (random_.Next() + word_read) % (kRegionBytes / block_bytes_) * block_bytes_;
  }

 private:
  Random random_;
  uint64_t block_bytes_;
};

template <size_t kBytes>
Task<Done> ReadMany(Client& client, uint64_t seed) {
  Op op(client, OpKind::kSearch);
  Walk walk(seed, kBytes);
  uint64_t last = 0;
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    const FarAddr at(NodeId{0}, walk.Next(last));
    const auto block = co_await op.InOrder(Read<Block<kBytes>>(at));
    last = block.words[0];
  }
  co_return Done{};
}

// As above, but every trip is an operation of its own, with all the counting.
template <size_t kBytes>
Task<uint64_t> ReadOnce(Client& client, FarAddr at) {
  Op op(client, OpKind::kSearch);
  const auto block = co_await op.InOrder(Read<Block<kBytes>>(at));
  op.End(OpKind::kSearch, OpOutcome::kDone);
  co_return block.words[0];
}
template <size_t kBytes>
Task<Done> ReadOnceMany(Client& client, uint64_t seed) {
  Walk walk(seed, kBytes);
  uint64_t last = 0;
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    last = co_await ReadOnce<kBytes>(client, FarAddr(NodeId{0}, walk.Next(last)));
  }
  co_return Done{};
}

inline Task<Done> CasMany(Client& client, uint64_t seed) {
  Op op(client, OpKind::kUpdate);
  Walk walk(seed, kLineBytes);
  uint64_t last = 0;
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    const FarAddr at(NodeId{0}, walk.Next(last) + 8);
    last = co_await op.InOrder(Cas(at, 0, 0));
  }
  co_return Done{};
}

template <size_t kBytes>
Task<Done> WriteMany(Client& client, uint64_t seed) {
  Op op(client, OpKind::kUpdate);
  Walk walk(seed, kBytes);
  const Block<kBytes> zeroes{};
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    const FarAddr at(NodeId{0}, walk.Next(0));
    co_await op.InOrder(WriteObject(at, zeroes));
  }
  co_return Done{};
}

// One line again and again: what a trip costs when it is all machinery and no cache miss.
inline Task<Done> ReadSameMany(Client& client, uint64_t) {
  Op op(client, OpKind::kSearch);
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    benchmark::DoNotOptimize(co_await op.InOrder(Read<Block<64>>(FarAddr(NodeId{0}, 4096))));
  }
  co_return Done{};
}
inline Task<Done> CasSameMany(Client& client, uint64_t) {
  Op op(client, OpKind::kUpdate);
  for (int64_t i = 0; i < kTripsPerTask; ++i) co_await op.InOrder(Cas(FarAddr(NodeId{0}, 4096), 0, 0));
  co_return Done{};
}
inline Task<Done> WriteSameMany(Client& client, uint64_t) {
  Op op(client, OpKind::kUpdate);
  const Block<64> zeroes{};
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    co_await op.InOrder(WriteObject(FarAddr(NodeId{0}, 4096), zeroes));
  }
  co_return Done{};
}

using ManyTrips = Task<Done> (*)(Client& client, uint64_t seed);

// Runs a benchmark on a client of `fabric`.
inline void RunTrips(benchmark::State& state, Fabric& fabric, ManyTrips many) {
  const auto client = std::move(*fabric.Connect());
  const auto depth = static_cast<size_t>(state.range(0));
  uint64_t seed = 1;
  while (state.KeepRunningBatch(static_cast<int64_t>(depth) * kTripsPerTask)) {
    std::vector<Task<Done>> tasks;
    for (size_t i = 0; i < depth; ++i) tasks.push_back(many(*client, ++seed));
    if (!RunAll<Done>(*client, tasks).ok()) state.SkipWithError("a trip failed");
  }
}

}  // namespace farside::fabric
