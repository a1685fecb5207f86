// The WRITEs of a merge, in order, and behind them the raise of `merges` that tells all clients (chime/8): in
// as few trips as there are memory nodes.
#pragma once

#include <cstddef>
#include <vector>

#include "fabric/op.h"
#include "fabric/verb.h"
#include "farside/task.h"
#include "index/chime/layout.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class MergeWrites {
 public:
  MergeWrites(const TableContext& table, Root& root) : table_(table), root_(root) {}

  // The next one; `write` is of a node that `at` points to. Its bytes stay where they are until Run has
  // ended.
  void Add(NodePtr at, const fabric::WriteVerb& write) { steps_.push_back({at.node(), write}); }
  // If it fails, any of the first WRITEs may have taken effect, or may still do.
  Task<Done> Run(fabric::Op& op);

 private:
  struct Step {
    size_t node;
    fabric::WriteVerb write;
  };

  const TableContext& table_;
  Root& root_;
  std::vector<Step> steps_;
};

}  // namespace farside::index::chime
