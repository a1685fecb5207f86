#include "index/nessie/partition.h"

#include <algorithm>

namespace farside::index::nessie {

using fabric::FarAddr;

namespace {

// Clients begin to sweep at so many different places.
constexpr uint64_t kSweepers = 64;

GrowthOptions GrowthOf(const Options& options) {
  return {.engine = "nessie",
          .most_version = options.shape.most_version(),
          // Slots that are only announced cannot be split: so long are the trails that nothing shortens.
          .most_steps = kMostTrailOfChange - 1,
          .grows = options.grow,
          .max_load = options.max_load,
          .head_start = options.head_start,
          .alpha = options.alpha,
          .burst = options.burst};
}

}  // namespace

Partition::Partition(const Options& options, pool::PoolClient& pool, FarAddr root)
    : GrowingPartition(GrowthOf(options), pool, root), shape_(options.shape), pool_(pool) {}

// A growth by several versions leaves the segments before the last to the puts that need them: their slots
// are few.
void Partition::HasGrown() {
  unsplit_.Fill();
  const uint64_t slots = shape_.SegmentSlots(directory().version - 1);
  unswept_ = slots;
  next_sweep_ = pool_.member(node()).self().slot() * (slots / kSweepers) % slots;
}

uint64_t Partition::TakeUnswept(uint64_t count) {
  const size_t segment = directory().version - 1;
  const uint64_t first = next_sweep_ / count * count;
  next_sweep_ = (first + count) % shape_.SegmentSlots(segment);
  unswept_ -= std::min(unswept_, count);
  return shape_.FirstSlot(segment) + first;
}

}  // namespace farside::index::nessie
