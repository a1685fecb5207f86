// The walk for sweeps and fsck: marks every block that the table owns (pool/memory/reach.h).
//
// It goes through each level from the first node along the siblings. Keys move to the right only (chime/6),
// so what is in the table throughout is met, in its old place or in its new one. A dead leaf on the way
// counts as an empty one (chime/9).
#pragma once

#include <cstdint>
#include <set>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/layout.h"
#include "index/chime/leaf_reader.h"
#include "index/chime/locator.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"
#include "pool/memory/reach.h"

namespace farside::index::chime {

class Walker {
 public:
  Walker(const TableContext& table, Root& root, Locator& locator, InnerNodes& inner_nodes, LeafReader& leaves)
      : table_(table), root_(root), locator_(locator), inner_nodes_(inner_nodes), leaves_(leaves) {}

  Task<Done> Walk(fabric::Op& op, pool::Reach& reach);

 private:
  // The dead nodes that siblings still name go into `dead`; likewise below.
  Task<Done> MarkInnerNodes(fabric::Op& op, pool::Reach& reach, std::set<uint64_t>& dead);
  Task<Done> MarkLeaves(fabric::Op& op, pool::Reach& reach, std::set<uint64_t>& dead);
  Task<Done> MarkRecords(fabric::Op& op, pool::Reach& reach, const Leaf& leaf);
  // Dead nodes that the nodes of a level still name, but for those in `marked`.
  Task<Done> MarkDeadChildren(fabric::Op& op, pool::Reach& reach, uint32_t level,
                              const std::set<uint64_t>& marked);
  Task<Done> MarkBound(fabric::Op& op, pool::Reach& reach, BoundRef bound);

  const TableContext& table_;
  Root& root_;
  Locator& locator_;
  InnerNodes& inner_nodes_;
  LeafReader& leaves_;
};

}  // namespace farside::index::chime
