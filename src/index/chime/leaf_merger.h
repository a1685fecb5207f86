// Merging: a leaf that has become empty goes, and the leaf to its left gets its range.
//
// L is the empty leaf, P the leaf before it under the same parent G. The merging client holds the locks of G,
// P and L, taken in this order, the last two without waiting.
//
//   1  WRITE the header of L: P is its heir. From now on L is dead, and no client changes it any more.
//   2  WRITE the header of P: the fence and the sibling of L. From now on P has the range.
//   3  WRITE the pivot of L in G: nothing
//   4  FAA `merges` of the root block (chime/8)
//   5  L is retired, and so is the block of its separator, if there is one; the locks are released
//
// If the merging client dies before 1, nothing has happened. After 1, the client that takes over P's lock
// does 2; after 2, the client that takes over G's lock does 3 to 5 (and 2 before them, if need be). After 3,
// no node names L, and a sweep frees it: the sweep's walk raises `merges`.
//
// So as long as P names a dead sibling, or G a dead child, its lock is held by the merging client, alive or
// dead: a client that takes a free lock finds neither (chime/9).
//
// The first leaf of a parent stays: there is no P. But when it is the only one left, its parent goes
// (inner_merger.h), and it is merged under the next parent. With keys=inline the leaf that begins at the
// middle stays the first, so no merge goes across the middle (chime/11).
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/inner_merger.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/key.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/locator.h"
#include "index/chime/node_locks.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"
#include "pool/client.h"

namespace farside::index::chime {

class LeafMerger {
 public:
  LeafMerger(const TableContext& table, NodeLocks& locks, InnerNodes& inner_nodes, Root& root,
             Locator& locator, InnerMerger& inner_merger)
      : table_(table),
        locks_(locks),
        inner_nodes_(inner_nodes),
        root_(root),
        locator_(locator),
        inner_merger_(inner_merger) {}

  // After a delete of `key` has left the leaf empty; no lock is held. Merges that leaf, then inner nodes that
  // have one child left, and empty leaves that are the first ones no more. If other clients hold the locks,
  // what is left stays, which is no error.
  Task<Done> MergeEmptied(fabric::Op& op, Key key, NodePtr leaf, const pool::PoolClient::Pin& pin);

 private:
  enum class Merged : uint8_t {
    kGone,
    kStays,      // for good
    kAgain,      // another client held a lock
    kElsewhere,  // the parent does not have the key; the next node may
    kInDoubt,    // steps may be half done: no lock may be released before this client is fenced
  };
  struct Outcome {
    Merged merged;
    NodePtr empty = {};  // a leaf that has the key and may be empty: the heir, or the leaf itself if it stays
    bool first = false;  // that leaf is its parent's first child
    NodePtr lonely = {};  // the parent, if that leaf is its only child
  };
  // What is merged, and what was READ of it.
  struct Pair {
    NodePtr left;
    NodePtr leaf;
    NodePtr parent;
    size_t slot = 0;             // of the leaf's pivot
    bool left_is_first = false;  // among the children of the parent
    Leaf before = {};            // the left leaf; its header alone if it is the first
    Leaf empty = {};
  };

  Task<Outcome> Merge(fabric::Op& op, Key key, NodePtr leaf, const pool::PoolClient::Pin& pin);
  // The lock of the parent is held, and stays held.
  Task<Outcome> MergeUnder(fabric::Op& op, Key key, NodePtr leaf, NodePtr parent, InnerImage& image,
                           const pool::PoolClient::Pin& pin);
  // Both locks, or none.
  Task<bool> TryLockBoth(fabric::Op& op, Pair& pair);
  bool CanMerge(const Pair& pair) const;
  // The left leaf, if it may be empty.
  NodePtr EmptyLeftOf(const Pair& pair) const;
  // Steps 1 to 4.
  Task<Done> Write(fabric::Op& op, const Pair& pair);

  const TableContext& table_;
  NodeLocks& locks_;
  InnerNodes& inner_nodes_;
  Root& root_;
  Locator& locator_;
  InnerMerger& inner_merger_;
};

}  // namespace farside::index::chime
