// What the steps of one search, or of one change, share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "fabric/op.h"
#include "index/chime/deferred_work.h"
#include "index/chime/hotspots.h"
#include "index/chime/layout.h"
#include "index/chime/locator.h"
#include "index/chime/node_locks.h"
#include "index/chime/table_context.h"
#include "index/chime/target.h"
#include "index/kit/change.h"
#include "index/kit/context.h"

namespace farside::index::chime {

struct SearchContext : index::SearchContext {
  SearchContext(const TableContext& table, const Hotspots& hotspots, fabric::Op& an_op,
                std::string_view a_key, std::string& a_value)
      : index::SearchContext(table.pool, an_op, a_key, Hash64(a_key), table.nodes.first(), a_value),
        target(table.shape(), hotspots, key, hash) {}

  Target target;
  Position position;
  NodePtr dead;    // the last dead leaf that the search came to
  TornReads torn;  // of this leaf
};

struct ChangeContext : index::ChangeContext {
  ChangeContext(const TableContext& table, const Hotspots& hotspots, PivotInserts& pivot_inserts,
                fabric::Op& an_op, Change& a_change)
      : index::ChangeContext(table.pool, an_op, a_change, Hash64(a_change.key), table.nodes.first()),
        target(table.shape(), hotspots, key, hash),
        deferred(table, pivot_inserts) {}

  // With keys=inline there are no drafts, and any trip may have written the entry.
  static bool MayHaveEffect() { return true; }
  void Unpin() {
    deferred.ReturnMemory();
    index::ChangeContext::Unpin();
  }

  Target target;
  Position position;         // null: the leaf has to be found
  std::optional<Spot> spot;  // where the key was found last, if the change looks there alone
  DeferredWork deferred;
};

// What came of an attempt under the lock of a leaf.
enum class Step : uint8_t {
  kCommitted,  // the change is done, and the lock is released
  kEmptied,    // the same; and the leaf has no entries left, as far as the change has seen
  kUnchanged,  // there was nothing to do; the lock is held
  kBeyond,     // the key is not below the leaf's fence; the lock is held
  kElsewhere,  // the key is not where it was found last; the lock is held
  kDead,       // the leaf has an heir; the lock is held
  kAgain,      // the leaf was split, or there was no memory at hand; the lock is released
};

}  // namespace farside::index::chime
