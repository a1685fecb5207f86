// Trips of the shm fabric, over a region of the same size as those of the embedded fabric in
// embedded_bench.cc. The daemon is in this process, and has nothing to do.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "bench/micro/trips.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/shm/server.h"
#include "fabric/shm/shared_memory.h"
#include "fabric/shm/shm.h"
#include "tests/support/temporary_folder.h"

namespace farside::fabric {
namespace {

// One daemon and one fabric for all benchmarks, every page of the region touched.
class Machine {
 public:
  Machine() {
    memory_ = std::move(
        *shm::SharedMemory::Create(std::move(*memory::Region::Shareable(kRegionBytes)), shm::NewRegionId()));
    // The embedded fabric has huge pages, where the kernel has any.
    if (!memory_->UseHugePages()) std::memset(memory_->region().data(), 0, kRegionBytes);
    node_ = std::make_unique<memory::ServedNode>(memory_->region(), memory_->stripes(), memory_->region_id());
    const std::string path = folder_.path() + "/node";
    server_ = std::move(*shm::Server::Start(*node_, *memory_, {.node = path}));
    fabric_ = std::move(*shm::ShmFabric::Open({.nodes = {path}}));
    stays_ = std::move(*fabric_->Connect());  // keeps the mapping, and the page tables with it
  }
  Fabric& fabric() { return *fabric_; }

 private:
  const TemporaryFolder folder_;
  std::unique_ptr<shm::SharedMemory> memory_;
  std::unique_ptr<memory::ServedNode> node_;
  std::unique_ptr<shm::Server> server_;
  std::unique_ptr<shm::ShmFabric> fabric_;
  std::unique_ptr<Client> stays_;
};

Fabric& BigFabric() {
  static Machine machine;
  return machine.fabric();
}

template <ManyTrips kMany>
void Trips(benchmark::State& state) {
  RunTrips(state, BigFabric(), kMany);
}
BENCHMARK(Trips<ReadMany<64>>)->Name("ShmRead64")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<ReadMany<512>>)->Name("ShmRead512")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<CasMany>)->Name("ShmCas")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<WriteMany<64>>)->Name("ShmWrite64")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<ReadSameMany>)->Name("ShmRead64InCache")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<CasSameMany>)->Name("ShmCasInCache")->Arg(1)->Arg(32)->ArgName("depth");
BENCHMARK(Trips<WriteSameMany>)->Name("ShmWrite64InCache")->Arg(1)->Arg(32)->ArgName("depth");

}  // namespace
}  // namespace farside::fabric
