// Inserting pivots: the levels above a node that was split get its new sibling. A full parent is split in
// turn, and above the root there is a new root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/deferred_work.h"
#include "index/chime/inner_nodes.h"
#include "index/chime/layout.h"
#include "index/chime/locator.h"
#include "index/chime/missing_pivot.h"
#include "index/chime/node_locks.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"
#include "index/kit/key_queue.h"

namespace farside::index::chime {

class PivotInserts {
 public:
  PivotInserts(const TableContext& table, NodeLocks& locks, InnerNodes& inner_nodes, Root& root,
               Locator& locator)
      : table_(table), locks_(locks), inner_nodes_(inner_nodes), root_(root), locator_(locator) {}

  // Inserts the pivot unless it is there. The tree works without it (chime/7), so a lack of memory, or a lock
  // that stays taken, is no error.
  Task<Done> InsertMissing(fabric::Op& op, MissingPivot missing);

 private:
  enum class Inserted : uint8_t { kDone, kElsewhere, kAgain };

  Task<Done> Insert(fabric::Op& op, MissingPivot missing);
  // At the parent, or at a sibling or an heir of it.
  Task<Inserted> InsertFrom(fabric::Op& op, NodePtr at, const MissingPivot& missing, DeferredWork& deferred);
  // The lock of `at` is held. If it succeeds, the lock is released; kElsewhere: `at` is the node to go on at.
  Task<Inserted> InsertLocked(fabric::Op& op, NodePtr& at, InnerImage& image, const MissingPivot& missing,
                              Header of_child, DeferredWork& deferred);
  Task<Inserted> SplitInner(fabric::Op& op, NodePtr at, InnerImage& image, DecodedInner decoded,
                            DeferredWork& deferred);
  Task<Done> WriteSplit(fabric::Op& op, NodePtr at, InnerImage& left, NodePtr made, InnerImage& right);

  const TableContext& table_;
  NodeLocks& locks_;
  InnerNodes& inner_nodes_;
  Root& root_;
  Locator& locator_;
  KeyQueue pending_;  // by the child
};

// Where a new node goes that begins at `separator`: a table on several memory nodes is spread over them.
size_t NodeForNew(const TableContext& table, size_t old, std::string_view separator);

}  // namespace farside::index::chime
