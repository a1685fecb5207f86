#include "index/shard/partition.h"

namespace farside::index::shard {

using fabric::FarAddr;

namespace {

GrowthOptions GrowthOf(const Options& options) {
  return {.engine = "shard",
          .most_version = options.shape.most_version(),
          .max_load = options.max_load,
          .head_start = options.head_start,
          .alpha = options.alpha,
          .burst = options.burst};
}

}  // namespace

Partition::Partition(const Options& options, pool::PoolClient& pool, FarAddr root)
    : GrowingPartition(GrowthOf(options), pool, root), shape_(options.shape) {}

FarAddr Partition::BucketAt(uint64_t unit) const {
  const size_t segment = shape_.SegmentOf(unit);
  return FarAddr(node(),
                 directory().bases[segment] + (unit - shape_.FirstUnit(segment)) * shape_.unit_bytes());
}

FarAddr Partition::OverflowAt(uint64_t unit) const { return BucketAt(unit) + shape_.bucket_bytes(); }

FarAddr Partition::LockAt(uint64_t unit) const {
  const size_t segment = shape_.SegmentOf(unit);
  const uint64_t lock = (unit - shape_.FirstUnit(segment)) % shape_.SegmentLocks(segment);
  return FarAddr(node(),
                 directory().bases[segment] + shape_.SegmentUnits(segment) * shape_.unit_bytes() + lock * 8);
}

}  // namespace farside::index::shard
