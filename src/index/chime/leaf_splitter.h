// Splitting a leaf that has no room for a key.
//
//   1  WRITE the new leaf, whole: no client can reach it yet
//   2  WRITE the old header: its fence, its sibling, which entries are leaving, `moves` odd. The new leaf has
//      them now.
//   3  WRITE the old lines, without the entries that leave
//   4  WRITE the old header: nothing is leaving, `moves` even. From now on other clients go to the new leaf.
//   5  release the lock of the old leaf
//   6  the parent gets a pivot (pivot_inserts.h)
//
// If the splitting client dies before 2, no client reaches the new leaf, and a sweep frees it. After 2, the
// client that takes the lock over does 3 and 4 by what the header says. After 5, a client that had to follow
// the sibling does 6 (chime/7).
#pragma once

#include <vector>

#include "fabric/op.h"
#include "fabric/verb.h"
#include "farside/task.h"
#include "index/chime/context.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/leaf_turn.h"
#include "index/chime/record_reader.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class LeafSplitter {
 public:
  LeafSplitter(const TableContext& table, RecordReader& records) : table_(table), records_(records) {}

  // Splits the leaf of the change, whose lock is held, and leaves the pivot to the change's deferred work.
  // The lock is released unless it fails; the caller then looks again where the key belongs. `leaf`: as it is
  // under the lock.
  Task<Step> Split(ChangeContext& change, LeafTurn& turn, Leaf& leaf);

 private:
  // The memory that a split takes.
  struct Memory;

  Task<Division> Divide(ChangeContext& change, const Leaf& leaf);
  bool TakeMemory(DeferredWork& deferred, size_t node, Memory& memory) const;
  // After a trip of the split has failed.
  void GiveBack(const Error& error, size_t node, const Memory& memory) const;
  // Moves the entries that leave to the right leaf, and sets the headers to those of step 2 and 1.
  void MoveEntries(const Division& division, NodePtr made, BoundRef ref, Leaf& leaf, Leaf& right) const;
  Task<Done> Write(fabric::Op& op, LeafTurn& turn, NodePtr at, Leaf& leaf, NodePtr made, Leaf& right,
                   std::vector<fabric::WriteVerb> first);

  const TableContext& table_;
  RecordReader& records_;
};

}  // namespace farside::index::chime
