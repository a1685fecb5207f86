#include "index/nessie/partition.h"

namespace farside::index::nessie {

using fabric::FarAddr;

namespace {

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
    : GrowingPartition(GrowthOf(options), pool, root), shape_(options.shape) {}

}  // namespace farside::index::nessie
