// Moving entries of a leaf to other slots of their neighbourhoods, so that a new entry gets a slot of its
// own.
#pragma once

#include <cstddef>
#include <vector>

#include "farside/task.h"
#include "index/chime/context.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "index/chime/leaf_turn.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class EntryMover {
 public:
  // In one trip: two headers, an entry for each move, a block and the end of the turn stay below the verbs
  // that a trip may have.
  static constexpr size_t kMostMoves = 48;

  explicit EntryMover(const TableContext& table) : table_(table) {}

  // Moves the entries along `path` (FindRoom), writes the new entry, and ends the turn at the leaf of the
  // change.
  Task<Step> MoveAndCommit(ChangeContext& change, LeafTurn& turn, const Leaf& image, std::vector<size_t> path,
                           Entry entry);

 private:
  const TableContext& table_;
};

}  // namespace farside::index::chime
