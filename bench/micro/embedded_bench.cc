// Trips of the embedded fabric over a region that no cache holds, beside plain memcpy from the same region.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/micro/trips.h"
#include "fabric/embedded/embedded.h"
#include "fabric/memory/region.h"

namespace farside::fabric {
namespace {

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

template <ManyTrips kMany>
void Trips(benchmark::State& state) {
  RunTrips(state, BigFabric(), kMany);
}
BENCHMARK(Trips<ReadMany<64>>)->Name("EmbeddedRead64")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<ReadMany<512>>)->Name("EmbeddedRead512")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<ReadOnceMany<64>>)->Name("EmbeddedRead64AsOperation")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<CasMany>)->Name("EmbeddedCas")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<WriteMany<64>>)->Name("EmbeddedWrite64")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<ReadSameMany>)->Name("EmbeddedRead64InCache")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<CasSameMany>)->Name("EmbeddedCasInCache")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<WriteSameMany>)->Name("EmbeddedWrite64InCache")->Arg(1)->Arg(32)->ArgName("depth");

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
