// Trips of the embedded fabric over a region that no cache holds, beside plain memcpy from the same region.
//
// Every operation is a chain, as in an index: the next address depends on the bytes just read. `depth` is the
// number of chains at once; with one, a trip pays for the whole cache miss.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "fabric/embedded/embedded.h"
#include "fabric/op.h"
#include "fabric/run.h"

namespace farside::fabric {
namespace {

constexpr uint64_t kRegionBytes = uint64_t{1} << 30;
constexpr int64_t kTripsPerTask = 1000;

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

// One fabric for all benchmarks, every page of it touched.
embedded::EmbeddedFabric& BigFabric() {
  static const std::unique_ptr<embedded::EmbeddedFabric> fabric = [] {
    auto opened = embedded::EmbeddedFabric::Open(embedded::Options{.region_bytes = {kRegionBytes}});
    for (uint64_t offset = 0; offset < kRegionBytes; offset += kPageBytes) {
      (*opened)->memory(NodeId{0}).Store(offset, 0);
    }
    return std::move(*opened);
  }();
  return *fabric;
}

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

Task<Done> CasMany(Client& client, uint64_t seed) {
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

using ManyTrips = Task<Done> (*)(Client& client, uint64_t seed);

template <ManyTrips kMany>
void Trips(benchmark::State& state) {
  const auto client = std::move(*BigFabric().Connect());
  const auto depth = static_cast<size_t>(state.range(0));
  uint64_t seed = 1;
  while (state.KeepRunningBatch(static_cast<int64_t>(depth) * kTripsPerTask)) {
    std::vector<Task<Done>> tasks;
    for (size_t i = 0; i < depth; ++i) tasks.push_back(kMany(*client, ++seed));
    if (!RunAll<Done>(*client, tasks).ok()) state.SkipWithError("a trip failed");
  }
}
BENCHMARK(Trips<ReadMany<64>>)->Name("EmbeddedRead64")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<ReadMany<512>>)->Name("EmbeddedRead512")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<ReadOnceMany<64>>)->Name("EmbeddedRead64AsOperation")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<CasMany>)->Name("EmbeddedCas")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<WriteMany<64>>)->Name("EmbeddedWrite64")->Arg(1)->Arg(32)->ArgName("depth");

// One line again and again: what a trip costs when it is all machinery and no cache miss.
Task<Done> ReadSameMany(Client& client, uint64_t) {
  Op op(client, OpKind::kSearch);
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    benchmark::DoNotOptimize(co_await op.InOrder(Read<Block<64>>(FarAddr(NodeId{0}, 4096))));
  }
  co_return Done{};
}
BENCHMARK(Trips<ReadSameMany>)->Name("EmbeddedRead64InCache")->Arg(1)->Arg(32)->ArgName("depth");

template <size_t kBytes>
void Memcpy(benchmark::State& state) {
  static const auto region = std::move(*memory::Region::Anonymous(kRegionBytes));
  std::memset(region.bytes().data(), 0, kRegionBytes);
  const auto depth = static_cast<size_t>(state.range(0));
  std::vector<Walk> walks;
  for (size_t i = 0; i < depth; ++i) walks.emplace_back(i + 1, kBytes);
  std::vector<Block<kBytes>> blocks(depth);
  while (state.KeepRunningBatch(static_cast<int64_t>(depth))) {
    for (size_t i = 0; i < depth; ++i) {
      std::memcpy(&blocks[i], region.bytes().data() + walks[i].Next(blocks[i].words[0]), kBytes);
      benchmark::ClobberMemory();
    }
  }
}
BENCHMARK(Memcpy<64>)->Name("Memcpy64")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Memcpy<512>)->Name("Memcpy512")->Arg(1)->Arg(32)->ArgName("depth");

}  // namespace
}  // namespace farside::fabric
