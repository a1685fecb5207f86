// A client of one node with one operation at a time, for the tests and the bench of the allocator.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "fabric/embedded/embedded.h"
#include "fabric/run.h"
#include "pool/members/membership.h"
#include "pool/memory/allocator.h"

namespace farside::pool {

// A region of exactly so many chunks.
inline Geometry GeometryOfChunks(uint64_t chunks, uint64_t chunk_bytes) {
  Geometry geometry{.client_slots = 16, .table_slots = 4, .chunk_bytes = chunk_bytes};
  geometry.region_bytes = geometry.chunk_table() + RoundUp(chunks * 8, kPage) + chunks * chunk_bytes;
  return geometry;
}

class AllocatorSession {
 public:
  template <class Start>
  auto Try(Start start) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    return fabric::Run(*client_, start(op));
  }
  // Where an error means that the test itself is wrong.
  template <class Start>
  auto Run(Start start) {
    auto result = Try(start);
    if (!result.ok()) {
      fmt::print(stderr, "{}\n", result.error().ToString());
      std::abort();
    }
    return *result;
  }

  AllocatorSession(fabric::embedded::EmbeddedFabric& fabric, const Geometry& geometry)
      : client_(std::move(*fabric.Connect())),
        membership(*client_, fabric::NodeId{0}, geometry, LeaseOptions{}),
        allocator(membership) {
    Run([&](fabric::Op& op) { return membership.Join(op); });
  }

  fabric::FarAddr Allocate(uint64_t bytes) {
    return Run([&](fabric::Op& op) { return allocator.Allocate(op, bytes); });
  }
  Result<fabric::FarAddr> TryToAllocate(uint64_t bytes) {
    return Try([&](fabric::Op& op) { return allocator.Allocate(op, bytes); });
  }
  void Retire(fabric::FarAddr block, uint64_t bytes) {
    allocator.Retire(block, bytes, membership.known_epoch());
  }
  // With nothing in flight: syncs, looks around and settles.
  void Sync() {
    const uint64_t before = allocator.retired_so_far();
    const uint64_t known = membership.known_epoch();
    const uint64_t settled = std::min(known, allocator.OldestUnsettled());
    Run([&](fabric::Op& op) { return membership.Sync(op, known, settled, /*raise=*/true); });
    allocator.Stamp(before, membership.known_epoch());
    view = Run([&](fabric::Op& op) { return membership.LookAround(op); });
    Run([&](fabric::Op& op) { return allocator.Reclaim(op, view.safe_epoch); });
  }
  Result<Done> LeaveAll() {
    return Try([&](fabric::Op& op) { return allocator.LeaveAll(op); });
  }

  fabric::Client& client() { return *client_; }

 private:
  std::unique_ptr<fabric::Client> client_;

 public:
  Membership membership;
  Allocator allocator;
  RegistryView view;  // of the last Sync
};

}  // namespace farside::pool
