// The parts of a table, one on each of its nodes; each listens to the syncs of its node.
#pragma once

#include <memory>
#include <span>

#include "fabric/address.h"
#include "index/kit/partitions.h"
#include "index/shard/layout.h"
#include "index/shard/options.h"
#include "index/shard/partition.h"
#include "pool/client.h"

namespace farside::index::shard {

class Partitions : public index::Partitions<Partition> {
 public:
  Partitions(const Options& options, pool::PoolClient& pool, std::span<const fabric::FarAddr> roots)
      : pool_(pool) {
    for (const fabric::FarAddr& root : roots) {
      Add(root.node, std::make_shared<Partition>(options, pool_, root));
      pool_.AddSyncListener(root.node, parts().back());
    }
  }
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;
  ~Partitions() {
    for (const auto& part : parts()) pool_.RemoveSyncListener(part->node(), part.get());
  }

  using index::Partitions<Partition>::Of;
  Partition& Of(const KeyHash& hash) { return Of(hash.hash()); }

 private:
  pool::PoolClient& pool_;
};

}  // namespace farside::index::shard
