// The parts of a table, one on each of its nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/address.h"
#include "index/shard/layout.h"
#include "index/shard/options.h"
#include "index/shard/partition.h"
#include "pool/catalog/placement.h"
#include "pool/client.h"

namespace farside::index::shard {

class Partitions {
 public:
  Partitions(const Options& options, pool::PoolClient& pool, std::span<const fabric::FarAddr> roots)
      : pool_(pool) {
    for (const fabric::FarAddr& root : roots) {
      parts_.push_back(std::make_shared<Partition>(options, pool_, root));
      nodes_.push_back(root.node);
      pool_.AddSyncListener(root.node, parts_.back());
    }
  }
  Partitions(const Partitions&) = delete;
  Partitions& operator=(const Partitions&) = delete;
  ~Partitions() {
    for (const auto& part : parts_) pool_.RemoveSyncListener(part->node(), part.get());
  }

  // The one that a key belongs to.
  Partition& Of(uint64_t hash) { return *parts_[nodes_.size() == 1 ? 0 : pool::PickNode(hash, nodes_)]; }
  Partition& Of(const KeyHash& hash) { return Of(hash.hash()); }

  size_t size() const { return parts_.size(); }
  Partition& operator[](size_t index) { return *parts_[index]; }
  const Partition& operator[](size_t index) const { return *parts_[index]; }

 private:
  pool::PoolClient& pool_;
  std::vector<std::shared_ptr<Partition>> parts_;
  std::vector<fabric::NodeId> nodes_;
};

}  // namespace farside::index::shard
