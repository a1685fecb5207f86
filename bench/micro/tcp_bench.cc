// Trips of the tcp fabric over loopback, client and server in this process, with one thread each.
//
// With depth 1 it is the round trip. With more, that many trips are in flight, and share their system calls.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/log.h"
#include "base/random.h"
#include "fabric/memory/region.h"
#include "fabric/memory/served_node.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/tcp/server.h"
#include "fabric/tcp/tcp.h"

namespace farside::fabric {
namespace {

constexpr uint64_t kRegionBytes = uint64_t{64} << 20;
constexpr int64_t kTripsPerTask = 1000;

// A node and a fabric that reaches it.
class Loopback {
 public:
  Loopback()
      : region_(*memory::Region::Anonymous(kRegionBytes)),
        stripes_(std::make_unique<memory::StripeTable>()),
        node_(region_.bytes(), *stripes_, memory::RegionId{1, 1}) {
    tcp::ServerOptions options;
    options.threads = 1;
    server_ = std::move(*tcp::Server::Listen(node_, options, log_));
    tcp::Options opened;
    opened.addresses = {"127.0.0.1:" + std::to_string(server_->port())};
    fabric_ = std::move(*tcp::TcpFabric::Open(opened));
  }
  Fabric& fabric() { return *fabric_; }

 private:
  Logger log_{LogLevel::kError};
  memory::Region region_;
  std::unique_ptr<memory::StripeTable> stripes_;
  memory::ServedNode node_;
  std::unique_ptr<tcp::Server> server_;
  std::unique_ptr<tcp::TcpFabric> fabric_;
};

template <size_t kBytes>
struct Block {
  std::array<uint64_t, kBytes / 8> words;
};

template <size_t kBytes>
FarAddr AnyBlock(Random& random) {
  return FarAddr(NodeId{0}, random.Below(kRegionBytes / kBytes) * kBytes);
}

template <size_t kBytes>
Task<Done> ReadMany(Client& client, uint64_t seed) {
  Op op(client, OpKind::kSearch);
  Random random(seed);
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    const FarAddr at = AnyBlock<kBytes>(random);
    benchmark::DoNotOptimize(co_await op.InOrder(Read<Block<kBytes>>(at)));
  }
  co_return Done{};
}

template <size_t kBytes>
Task<Done> WriteMany(Client& client, uint64_t seed) {
  Op op(client, OpKind::kUpdate);
  Random random(seed);
  const Block<kBytes> zeroes{};
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    const FarAddr at = AnyBlock<kBytes>(random);
    co_await op.InOrder(WriteObject(at, zeroes));
  }
  co_return Done{};
}

Task<Done> CasMany(Client& client, uint64_t seed) {
  Op op(client, OpKind::kUpdate);
  Random random(seed);
  for (int64_t i = 0; i < kTripsPerTask; ++i) {
    const FarAddr at = AnyBlock<64>(random);
    benchmark::DoNotOptimize(co_await op.InOrder(Cas(at, 0, 0)));
  }
  co_return Done{};
}

using ManyTrips = Task<Done> (*)(Client& client, uint64_t seed);

template <ManyTrips kMany>
void Trips(benchmark::State& state) {
  Loopback loopback;
  const auto client = std::move(*loopback.fabric().Connect());
  const auto depth = static_cast<size_t>(state.range(0));
  uint64_t seed = 1;
  while (state.KeepRunningBatch(static_cast<int64_t>(depth) * kTripsPerTask)) {
    std::vector<Task<Done>> tasks;
    for (size_t i = 0; i < depth; ++i) tasks.push_back(kMany(*client, ++seed));
    if (!RunAll<Done>(*client, tasks).ok()) state.SkipWithError("a trip failed");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(Trips<ReadMany<64>>)->Name("TcpRead64")->Arg(1)->Arg(8)->Arg(64)->ArgName("depth")->UseRealTime();
BENCHMARK(Trips<ReadMany<1024>>)->Name("TcpRead1024")->Arg(1)->Arg(64)->ArgName("depth")->UseRealTime();
BENCHMARK(Trips<WriteMany<64>>)->Name("TcpWrite64")->Arg(1)->Arg(64)->ArgName("depth")->UseRealTime();
BENCHMARK(Trips<CasMany>)->Name("TcpCas")->Arg(1)->Arg(64)->ArgName("depth")->UseRealTime();

}  // namespace
}  // namespace farside::fabric
