// Locks of dead clients. The client that takes such a lock over finishes what its owner had begun, and
// releases it: a leaf is brought to rest (chime/2), and the steps of a merge that are missing are done
// (leaf_merger.h, inner_merger.h).
#pragma once

#include <cstdint>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/leaf_reader.h"
#include "index/chime/node_locks.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class Recovery {
 public:
  Recovery(const TableContext& table, NodeLocks& locks, LeafReader& leaves, InnerNodes& inner_nodes,
           Root& root)
      : table_(table), locks_(locks), leaves_(leaves), inner_nodes_(inner_nodes), root_(root) {}

  // From an owner that is gone, so none of its verbs can still take effect. `held`: the word of the lock.
  Task<Done> TakeOver(fabric::Op& op, NodePtr at, NodeLock held);
  // The same if the lock's owner is gone. Does not wait for a living owner.
  Task<Done> TakeOverFromDead(fabric::Op& op, NodePtr at);

 private:
  Task<Done> FinishLeaf(fabric::Op& op, NodePtr at, NodeLock mine);
  Task<Done> CompleteMerge(fabric::Op& op, NodePtr at, Header& header);
  Task<Done> BringToRest(fabric::Op& op, NodePtr at, NodeLock mine, Leaf& leaf);
  Task<Done> FinishInner(fabric::Op& op, NodePtr at);
  Task<Done> CompleteInnerMerge(fabric::Op& op, NodePtr at, InnerImage& image, const DecodedInner& decoded);
  Task<Done> ClearDeadChildren(fabric::Op& op, NodePtr at, InnerImage& image, const DecodedInner& decoded);
  Task<Done> ClearDeadChild(fabric::Op& op, NodePtr at, InnerImage& image, const Pivot& pivot, NodePtr heir);

  const TableContext& table_;
  NodeLocks& locks_;
  LeafReader& leaves_;
  InnerNodes& inner_nodes_;
  Root& root_;
};

// Gives a leaf that was unlinked back to the allocator, and the block of its separator if it has one. That
// separator stood in the parent and in the heir's header only: it would be the fence of an inner node only if
// the leaf were the first child of the next one.
void RetireLeaf(const TableContext& table, NodePtr leaf, BoundRef separator, uint64_t separator_bytes,
                const pool::PoolClient::Pin& pin);
// The same for an inner node. Its separator stays: it is the pivot of the child that its heir has now.
void RetireInner(const TableContext& table, NodePtr node, const pool::PoolClient::Pin& pin);

}  // namespace farside::index::chime
