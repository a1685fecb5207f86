// The parts of a table, one on each of its nodes.
#pragma once

#include "index/kit/growing_partitions.h"
#include "index/shard/layout.h"
#include "index/shard/partition.h"

namespace farside::index::shard {

class Partitions : public GrowingPartitions<Partition> {
 public:
  using GrowingPartitions<Partition>::GrowingPartitions;

  using GrowingPartitions<Partition>::Of;
  Partition& Of(const KeyHash& hash) { return Of(hash.hash()); }
};

}  // namespace farside::index::shard
