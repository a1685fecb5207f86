// The parts of a growing table, one on each of its nodes; each listens to the syncs of its node.
#pragma once

#include <memory>
#include <span>

#include "fabric/address.h"
#include "index/kit/partitions.h"
#include "pool/client.h"

namespace farside::index {

// `Part` is a pool::SyncListener with `node()`, made from the options of its engine, the client and its root.
template <class Part>
class GrowingPartitions : public Partitions<Part> {
 public:
  template <class Options>
  GrowingPartitions(const Options& options, pool::PoolClient& pool, std::span<const fabric::FarAddr> roots)
      : pool_(pool) {
    for (const fabric::FarAddr& root : roots) {
      this->Add(root.node, std::make_shared<Part>(options, pool_, root));
      pool_.AddSyncListener(root.node, this->parts().back());
    }
  }
  GrowingPartitions(const GrowingPartitions&) = delete;
  GrowingPartitions& operator=(const GrowingPartitions&) = delete;
  ~GrowingPartitions() {
    for (const auto& part : this->parts()) pool_.RemoveSyncListener(part->node(), part.get());
  }
  // See Index.
  void ConfirmTable(const pool::Membership& home, uint64_t catalog_changes) {
    for (const auto& part : this->parts()) part->ConfirmTable(home, catalog_changes);
  }

 private:
  pool::PoolClient& pool_;
};

}  // namespace farside::index
