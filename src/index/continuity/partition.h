// The part of a table that lives on one node, as one client knows it: its root. Every sync reads the root
// (pool/4), so lookups need not.
//
// INVARIANT continuity/7: a table that is not the current one any more is given back after a grace period. By
// then every operation in flight began when its client knew the next one. So an operation reads only tables
// that are there, if it goes on from what its client knows by what it finds: from a pair that is marked as
// moved to the next table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/continuity/layout.h"
#include "index/continuity/options.h"
#include "pool/client.h"
#include "pool/members/sync_listener.h"

namespace farside::index::continuity {

class Partition final : public pool::SyncListener {
 public:
  Partition(const Options& /*options*/, pool::PoolClient& pool, fabric::FarAddr root)
      : at_(root), region_bytes_(pool.member(root.node).geometry().region_bytes) {}

  fabric::FarAddr at() const { return at_; }
  fabric::NodeId node() const { return at_.node; }
  // Its tables lie in the region.
  const Root& root() const { return root_; }
  // No table of the region has more pairs, nor have all that it ever grows out of, together.
  uint64_t most_pairs() const { return region_bytes_ / kPairBytes; }

  // An operation of this client brings a table for it to grow into.
  bool& grows() { return grows_; }

  // A sync has missed the root: what is known may be older than the pin. Then call Refresh.
  bool IsBehind() const { return missed_ != made_up_for_; }
  // One READ of the root.
  Task<Done> Refresh(fabric::Op& op);

  // ---- pool::SyncListener
  pool::SyncRequest BeforeSync(bool /*may_add*/) override { return {.read_at = at_.offset}; }
  void AfterSync(std::span<const std::byte, pool::kLine> line) override;
  void MissedSync() override { ++missed_; }

 private:
  bool IsSound(const Root& read) const;
  void Learn(const Root& read);

  const fabric::FarAddr at_;
  const uint64_t region_bytes_;
  Root root_{};
  uint64_t missed_ = 1;  // syncs that should have read the root and did not; nothing is known at first
  uint64_t made_up_for_ = 0;
  bool grows_ = false;
};

}  // namespace farside::index::continuity
