// Changing a key: one trip locks its leaf and READs where the key may stand, one writes the entry and
// unlocks, or hands the lock over to the next change of this client (leaf_turn.h).
#pragma once

#include <cstddef>
#include <optional>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/bound_texts.h"
#include "index/chime/context.h"
#include "index/chime/entry_mover.h"
#include "index/chime/hotspots.h"
#include "index/chime/leaf.h"
#include "index/chime/leaf_merger.h"
#include "index/chime/leaf_splitter.h"
#include "index/chime/leaf_turn.h"
#include "index/chime/leaf_under_lock.h"
#include "index/chime/locator.h"
#include "index/chime/node_locks.h"
#include "index/chime/root.h"
#include "index/chime/table_context.h"
#include "index/kit/tendency.h"

namespace farside::index::chime {

class Changer {
 public:
  Changer(const TableContext& table, Hotspots& hotspots, Root& root, Locator& locator, BoundTexts& bounds,
          NodeLocks& locks, EntryMover& mover, LeafSplitter& splitter, LeafMerger& merger)
      : table_(table),
        hotspots_(hotspots),
        root_(root),
        locator_(locator),
        bounds_(bounds),
        locks_(locks),
        mover_(mover),
        splitter_(splitter),
        merger_(merger) {}

  // One attempt, under the change's pin. If it fails with kContended, the change had no effect.
  Task<Attempt> TryChange(ChangeContext& change);

 private:
  // Sets `spot` and `position` if the hotspots have the key.
  void LookUpHotspot(ChangeContext& change);
  // Asks for memory for the block of the new value. False: it takes a trip.
  bool ReserveBlock(ChangeContext& change) const;
  // What becomes of that block if the change has failed: a trip that has certainly changed nothing has not
  // published it; otherwise the next sweep tells.
  void NoteFailed(ChangeContext& change, const Error& error) const;
  // Whether the leaf of a change that has waited for its turn was split meanwhile, as far as the client
  // knows: then the change goes to the leaf that has the key now.
  bool HasMovedOn(ChangeContext& change) const;
  // The lock of the leaf is held. If it returns an error, the lock is still held.
  Task<Step> ChangeLocked(ChangeContext& change, const LeafUnderLock& leaf, LeafTurn& turn);
  std::optional<Error> DamageOf(const ChangeContext& change, NodePtr at, const Header& header) const;
  // The entry that the change stores; fills the draft of its block.
  Entry EntryFor(ChangeContext& change, const Decision& decision) const;
  // Whether no other entry of the neighbourhood is used.
  static bool IsAlone(const Neighbourhood& hood, size_t slot);
  // `look`: all lines of the leaf are READ in the same trip, behind the release.
  Task<Step> Commit(ChangeContext& change, LeafTurn& turn, size_t slot, Entry entry, Leaf* look);
  // No slot of the neighbourhood is free: moves entries, or splits the leaf.
  Task<Step> MakeRoom(ChangeContext& change, const LeafUnderLock& leaf, LeafTurn& turn, Entry entry);
  // The block of an entry that the change has replaced or removed; it is unlinked.
  void RetireBlock(const ChangeContext& change, BlockRef block, uint64_t bytes) const;

  const TableContext& table_;
  Hotspots& hotspots_;
  Root& root_;
  Locator& locator_;
  BoundTexts& bounds_;
  NodeLocks& locks_;
  EntryMover& mover_;
  LeafSplitter& splitter_;
  LeafMerger& merger_;
  LeafTurns turns_;
  // Counts that are out of date cost a trip; a header that is READ in vain costs a verb.
  Tendency<8, 1, 16> stale_counts_;
  // A leaf that is READ in vain costs a thousand bytes; one that is not, a READ or two, and at times a trip.
  Tendency<1, 1, 16> inserts_;
};

}  // namespace farside::index::chime
