// READing whole leaves: between two READs of the header, and only a leaf that was at rest in between counts
// (chime/4).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fabric/op.h"
#include "farside/result.h"
#include "farside/task.h"
#include "index/chime/inner.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/node_locks.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class LeafReader {
 public:
  LeafReader(const TableContext& table, NodeLocks& locks) : table_(table), locks_(locks) {}

  // A leaf whose entries are each as they were at some moment of the call. A leaf that stays torn is locked,
  // which repairs it if its owner is dead.
  Task<Done> Read(fabric::Op& op, NodePtr at, Leaf& leaf, LockWait wait = LockWait::kBrief);
  // Several leaves, one attempt each; `at_rest[i]` tells whether leaves[i] counts.
  Task<Done> ReadSeveral(fabric::Op& op, std::span<const NodePtr> at, std::vector<Leaf>& leaves,
                         std::vector<bool>& at_rest);
  // The headers of the children of a parent of leaves.
  Task<std::vector<Header>> ReadHeaders(fabric::Op& op, std::span<const Pivot> pivots);

 private:
  Task<Done> ReadOfOneNode(fabric::Op& op, std::span<const NodePtr> at, std::span<Leaf> leaves,
                           std::span<Header> again);
  static std::optional<Error> DamageOf(NodePtr at, const Header& header);

  const TableContext& table_;
  NodeLocks& locks_;
};

}  // namespace farside::index::chime
