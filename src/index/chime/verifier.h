// Verifying a table that no client changes meanwhile, for fsck: level by level from the leaves up. What a
// pivot says of its child is compared with what the level below has shown.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/leaf_reader.h"
#include "index/chime/locator.h"
#include "index/chime/node_locks.h"
#include "index/chime/record_reader.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class Verifier {
 public:
  Verifier(const TableContext& table, Root& root, Locator& locator, InnerNodes& inner_nodes,
           BoundTexts& bounds, NodeLocks& locks, LeafReader& leaves, RecordReader& records)
      : table_(table),
        root_(root),
        locator_(locator),
        inner_nodes_(inner_nodes),
        bounds_(bounds),
        locks_(locks),
        leaves_(leaves),
        records_(records) {}

  // Under a pin. kCorrupt at the first invariant that is broken.
  Task<Done> Verify(fabric::Op& op);

 private:
  // Of the nodes of a level: the lower bound of their ranges.
  using LowerBounds = std::map<uint64_t, std::string>;

  // Merges that dead clients have left half done: no other client holds a lock.
  Task<Done> FinishMerges(fabric::Op& op);
  Task<Done> VerifyLeaves(fabric::Op& op, LowerBounds& bounds);
  Task<Done> VerifyLeaf(fabric::Op& op, NodePtr at, const Leaf& leaf, const Bound& low, const Bound& fence);
  Task<Done> VerifyRecords(fabric::Op& op, NodePtr at, std::vector<Item> items, const Bound& low,
                           const Bound& fence);
  // `below`: of the level below. Returns those of this level.
  Task<LowerBounds> VerifyLevel(fabric::Op& op, uint32_t level, const LowerBounds& below);
  bool IsAcross(const Bound& low, const Bound& fence) const;

  const TableContext& table_;
  Root& root_;
  Locator& locator_;
  InnerNodes& inner_nodes_;
  BoundTexts& bounds_;
  NodeLocks& locks_;
  LeafReader& leaves_;
  RecordReader& records_;
};

}  // namespace farside::index::chime
