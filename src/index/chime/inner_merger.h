// Merging inner nodes: a node that has one child left goes, and the node to its left gets the child and the
// range.
//
// R is the node with one child, L the node before it under the same parent G. The merging client holds the
// locks of G, L and R, taken in this order, the last two without waiting.
//
//   1  WRITE the header of R: L is its heir. From now on R is dead, and no client changes it any more.
//   2  WRITE the pivot of the child into a free slot of L. It does not count yet (chime/7).
//   3  WRITE the header of L: the fence and the sibling of R. From now on L has the range.
//   4  WRITE the header of G: one more of its children has died (chime/12)
//   5  WRITE the pivot of R in G: nothing
//   6  FAA `merges` of the root block (chime/8)
//   7  R is retired; the locks are released
//
// If the merging client dies before 1, nothing has happened. After 1, the client that takes over L's lock
// does 2 and 3; after 3, the client that takes over G's lock does 4 to 7 (and 2 and 3 before them, if need
// be). After 5, no node names R, and a sweep frees it: the sweep's walk raises `merges`.
//
// A client that comes to R meanwhile may go on to the child that R names: R is as good as a node that the
// client remembers (chime/12).
//
// The separator of R stays: it is the pivot of the child in L. A node that is the first child of its parent
// stays. With keys=inline, so does the parent of leaves that begins at the middle (chime/11).
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/inner.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/key.h"
#include "index/chime/layout.h"
#include "index/chime/locator.h"
#include "index/chime/node_locks.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"
#include "pool/client.h"

namespace farside::index::chime {

class InnerMerger {
 public:
  InnerMerger(const TableContext& table, NodeLocks& locks, InnerNodes& inner_nodes, Root& root,
              Locator& locator)
      : table_(table), locks_(locks), inner_nodes_(inner_nodes), root_(root), locator_(locator) {}

  // After a merge has left `lonely`, the parent of leaves that has `key`, with one child; no lock is held.
  // Merges that node with the one before it, and, for as long as a node above has one child, that one too.
  // True: a node is gone. If other clients hold the locks, the nodes stay, which is no error.
  Task<bool> MergeLonely(fabric::Op& op, Key key, NodePtr lonely, const pool::PoolClient::Pin& pin);

 private:
  enum class Merged : uint8_t {
    kGone,
    kStays,
    kAgain,      // another client held a lock
    kElsewhere,  // the parent does not have the key; the next node may
    kInDoubt,    // steps may be half done: no lock may be released before this client is fenced
  };
  struct Outcome {
    Merged merged;
    NodePtr lonely = {};  // the parent, if the heir, or the node that stays, is its only child
  };
  // A node as it is under its lock.
  struct Locked {
    NodePtr at;
    InnerImage image;
    DecodedInner decoded;
  };
  // What is merged.
  struct Trio {
    Locked parent;
    Locked left;
    Locked right;
    size_t index = 0;  // of the right one among the pivots of the parent
  };

  Task<Outcome> Merge(fabric::Op& op, Key key, uint32_t level, const pool::PoolClient::Pin& pin);
  // The lock of the parent is held, and stays held.
  Task<Outcome> MergeUnder(fabric::Op& op, Key key, Trio& trio, const pool::PoolClient::Pin& pin);
  // All three locks are held, and stay held.
  Task<Merged> MergeLocked(fabric::Op& op, Trio& trio, const pool::PoolClient::Pin& pin);
  // Both locks, or none.
  Task<bool> TryLockBoth(fabric::Op& op, Trio& trio);
  bool CanMerge(const Trio& trio) const;
  // Steps 1 to 6; the images become what is written.
  Task<Done> Write(fabric::Op& op, Trio& trio);

  const TableContext& table_;
  NodeLocks& locks_;
  InnerNodes& inner_nodes_;
  Root& root_;
  Locator& locator_;
};

// Whether a node of a level that begins at `begin` never has another one before it under its parent, and is
// never merged: the first one of the level, and with keys=inline the leaf and the parent of leaves that begin
// at the middle (chime/11). Every other first child ceases to be one when its parent is merged. So a client
// that remembers such a child as the first one has to look.
bool StaysFirst(const Shape& shape, const Bound& begin, uint32_t level);

// Step 3: the heir gets the range of the dead node, and what is known of those that have died there.
inline void InheritInner(Header& heir, const Header& dead) {
  heir.fence_prefix = dead.fence_prefix;
  heir.fence_ref = dead.fence_ref;
  heir.sibling = dead.sibling;
  heir.moves += dead.moves;
}

}  // namespace farside::index::chime
