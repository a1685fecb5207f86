// Finding the node of a level that has a key: from the root down, and along siblings and heirs (chime/6).
#pragma once

#include <cstdint>
#include <optional>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/circle.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/key.h"
#include "index/chime/layout.h"
#include "index/chime/recovery.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class PivotInserts;

// A node of the tree, and the inner node that led to it.
struct Position {
  NodePtr node;
  NodePtr parent;                      // null if it is not known
  bool by_sibling = false;             // a sibling or an heir led to the node; the parent did not name it
  std::optional<uint32_t> count = {};  // of a leaf, if it is remembered (chime/14)
  // Of the leaf whose sibling this one is, if a sibling led to it: siblings ascend.
  uint64_t passed_prefix = 0;
  BoundRef passed_ref = {};
  // The dead leaves that have led to this one, one after the other. A dead leaf keeps its heir for as long as
  // a pin can see it, and an heir stands before it; so they never lead in circles.
  Circle heirs = {};
};

class Locator {
 public:
  Locator(const TableContext& table, Root& root, InnerNodes& inner_nodes, BoundTexts& bounds,
          PivotInserts& pivot_inserts, Recovery& recovery)
      : table_(table),
        root_(root),
        inner_nodes_(inner_nodes),
        bounds_(bounds),
        pivot_inserts_(pivot_inserts),
        recovery_(recovery) {}

  // The node of a level that has the key, by cached inner nodes alone. False: it takes Find.
  bool FindCached(const Key& key, uint32_t level, Position& position) const;
  // The same, READing what is not cached. A null node: the tree has no such level yet.
  Task<Position> Find(fabric::Op& op, Key key, uint32_t level);
  // The count of the leaf at this position, from a READ of its header (InnerNodes::RememberCount).
  void RememberCount(const Position& position, const Header& header, uint64_t clears) const {
    inner_nodes_.RememberCount(position.parent, position.node, header, clears);
  }
  // The first node of a level. A split makes a new right node, so the first one stays the first.
  Task<NodePtr> Leftmost(fabric::Op& op, uint32_t level);

  // From a leaf whose fence the key is not below: to the leaf that has the key, or one nearer to it.
  Task<Position> GoRight(fabric::Op& op, Key key, Position position, Header header);
  // From a dead leaf to its heir.
  Task<Position> GoToHeir(fabric::Op& op, Position position, Header header);

 private:
  // The parent names a dead child: if the client that should have unlinked it is dead, this one does.
  Task<Done> FinishMerge(fabric::Op& op, NodePtr parent);

  const TableContext& table_;
  Root& root_;
  InnerNodes& inner_nodes_;
  BoundTexts& bounds_;
  PivotInserts& pivot_inserts_;
  Recovery& recovery_;
};

}  // namespace farside::index::chime
