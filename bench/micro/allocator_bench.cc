// The allocator on memory of this process: what a block costs, and what long use does to memory.
//
// MixedSizes is a measurement rather than a race: eight sessions take turns at a shared set of live blocks,
// so that seven of eight blocks are freed by somebody else than their owner. Its counters:
//   claimed / live     bytes of claimed chunks per byte asked for, with some 430 MB live. Every session has
//                      a chunk of every class at least, so this depends on the size of chunks more than on
//                      anything else
//   trips / 1000       trips of the allocators (claims, giving back, harvests, releases) per 1000 allocations
//   chunks left        when all is freed and everybody has left: none
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "fabric/embedded/embedded.h"
#include "fabric/run.h"
#include "pool/allocator.h"

namespace farside::pool {
namespace {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::embedded::EmbeddedFabric;

Geometry SomeGeometry(uint64_t chunks, uint64_t chunk_bytes = 1024 * 1024) {
  Geometry geometry{.client_slots = 16, .table_slots = 4, .chunk_bytes = chunk_bytes};
  geometry.region_bytes = geometry.chunk_table() + RoundUp(chunks * 8, kPage) + chunks * geometry.chunk_bytes;
  return geometry;
}

class Session {
 public:
  Session(EmbeddedFabric& fabric, const Geometry& geometry)
      : client_(std::move(*fabric.Connect())),
        membership(*client_, NodeId{0}, geometry, LeaseOptions{}),
        allocator(membership) {}

  template <class Start>
  auto Run(Start start) {
    Op op(*client_, OpKind::kMaintenance);
    return *fabric::Run(*client_, start(op));
  }
  FarAddr Allocate(uint64_t bytes) {
    if (const std::optional<FarAddr> block = allocator.TryAllocate(bytes)) return *block;
    return Run([&](Op& op) { return allocator.Allocate(op, bytes); });
  }
  void Retire(FarAddr block, uint64_t bytes) { allocator.Retire(block, bytes, membership.known_epoch()); }
  void Sync() {
    const uint64_t before = allocator.retired_so_far();
    const uint64_t known = membership.known_epoch();
    const uint64_t settled = std::min(known, allocator.OldestUnsettled());
    Run([&](Op& op) { return membership.Sync(op, known, settled, /*raise=*/true); });
    allocator.Stamp(before, membership.known_epoch());
    const uint64_t safe = Run([&](Op& op) { return membership.LookAround(op); }).safe_epoch;
    Run([&](Op& op) { return allocator.Settle(op, safe); });
  }

 private:
  std::unique_ptr<fabric::Client> client_;

 public:
  Membership membership;
  Allocator allocator;
};

void TakeAndFree(benchmark::State& state) {
  const Geometry geometry = SomeGeometry(64);
  const auto fabric = std::move(*EmbeddedFabric::Open({.region_bytes = {geometry.region_bytes}}));
  Session session(*fabric, geometry);
  session.Run([&](Op& op) { return session.membership.Join(op); });
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
  const Geometry geometry = SomeGeometry(64);
  const auto fabric = std::move(*EmbeddedFabric::Open({.region_bytes = {geometry.region_bytes}}));
  Session session(*fabric, geometry);
  session.Run([&](Op& op) { return session.membership.Join(op); });
  const auto bytes = static_cast<uint64_t>(state.range(0));
  std::vector<FarAddr> live(10'000);
  for (FarAddr& block : live) block = session.Allocate(bytes);
  const uint64_t trips = session.allocator.stats().trips;
  uint64_t i = 0;
  for (auto _ : state) {
    FarAddr& block = live[i * 7919 % live.size()];
    session.Retire(block, bytes);
    block = session.Allocate(bytes);
    if (++i % 1000 == 0) session.Sync();
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["trips / 1000"] =
      1000.0 * static_cast<double>(session.allocator.stats().trips - trips) / static_cast<double>(i);
}
BENCHMARK(LiveAndRetire)->Arg(64)->Arg(1024);

class Mix {
 public:
  static constexpr size_t kSessions = 8;
  static constexpr size_t kLive = 500'000;
  static constexpr uint64_t kTurnsPerSync = 8000;  // 1000 operations of each session

  explicit Mix(uint64_t chunk_bytes)
      : geometry_(SomeGeometry((uint64_t{2} << 30) / chunk_bytes, chunk_bytes)),
        fabric_(std::move(*EmbeddedFabric::Open({.region_bytes = {geometry_.region_bytes}}))) {
    for (auto& session : sessions_) {
      session = std::make_unique<Session>(*fabric_, geometry_);
      session->Run([&](Op& op) { return session->membership.Join(op); });
    }
  }

  // One block is replaced by another.
  void Turn(uint64_t turn) {
    Session& session = *sessions_[turn % kSessions];
    Block& block = live_[random_.Below(kLive)];
    if (block.bytes != 0) {
      session.Retire(block.at, block.bytes);
      live_bytes_ -= block.bytes;
    }
    block.bytes = 64 + random_.LogUniform(8000);
    block.at = session.Allocate(block.bytes);
    live_bytes_ += block.bytes;
    if (turn % kTurnsPerSync == 0) SyncAll();
  }
  void SyncAll() {
    for (auto& session : sessions_) session->Sync();
  }
  double ClaimedPerLive() const {
    return static_cast<double>(ChunksInUse() * geometry_.chunk_bytes) / static_cast<double>(live_bytes_);
  }
  uint64_t Trips() const {
    uint64_t trips = 0;
    for (const auto& session : sessions_) trips += session->allocator.stats().trips;
    return trips;
  }
  uint64_t ChunksInUse() const {
    uint64_t used = 0;
    for (uint64_t chunk = 0; chunk < geometry_.chunks(); ++chunk) {
      used += fabric_->memory(NodeId{0}).Load(geometry_.chunk_word(chunk)) != 0 ? 1 : 0;
    }
    return used;
  }
  void FreeAllAndLeave() {
    for (const Block& block : live_) {
      if (block.bytes != 0) sessions_[0]->Retire(block.at, block.bytes);
    }
    for (int i = 0; i < 4; ++i) SyncAll();
    for (auto& session : sessions_) {
      session->Run([&](Op& op) { return session->allocator.LeaveAll(op); });
      session->Run([&](Op& op) { return session->membership.Leave(op); });
    }
  }

 private:
  struct Block {
    FarAddr at;
    uint64_t bytes = 0;
  };

  const Geometry geometry_;
  const std::unique_ptr<EmbeddedFabric> fabric_;
  std::array<std::unique_ptr<Session>, kSessions> sessions_;
  std::vector<Block> live_{kLive};
  uint64_t live_bytes_ = 0;
  Random random_{1};
};

void MixedSizes(benchmark::State& state) {
  const auto turns = static_cast<uint64_t>(state.range(0));
  for (auto _ : state) {
    Mix mix(static_cast<uint64_t>(state.range(1)) * 1024);
    for (uint64_t turn = 1; turn <= turns; ++turn) mix.Turn(turn);
    state.counters["claimed / live"] = mix.ClaimedPerLive();
    state.counters["trips / 1000"] = 1000.0 * static_cast<double>(mix.Trips()) / static_cast<double>(turns);
    mix.FreeAllAndLeave();
    state.counters["chunks left"] = static_cast<double>(mix.ChunksInUse());
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(MixedSizes)
    ->ArgNames({"blocks", "chunk_kib"})
    ->Args({1'000'000, 1024})
    ->Args({10'000'000, 1024})
    ->Args({10'000'000, 256})
    ->Args({10'000'000, 64})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace farside::pool
