// Changing a key: one trip to read where it may stand, one to change it; or the second one alone, where the
// client remembers the key.
#pragma once

#include <optional>
#include <string_view>

#include "farside/result.h"
#include "farside/task.h"
#include "index/kit/block_buffer.h"
#include "index/kit/context.h"
#include "index/shard/context.h"
#include "index/shard/location_cache.h"
#include "index/shard/overflow_inserter.h"
#include "index/shard/slot_writer.h"
#include "index/shard/splitter.h"
#include "index/shard/unit_locks.h"
#include "index/shard/view.h"
#include "index/shard/view_reader.h"
#include "pool/client.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

// Whether the change gives a key that is present a value of its own, whatever the key has had.
inline bool IsOverwrite(ChangeKind kind) { return kind == ChangeKind::kPut || kind == ChangeKind::kUpdate; }

class Changer {
 public:
  Changer(pool::PoolClient& pool, UnitLocks& locks, ViewReader& views, SlotWriter& writer, Splitter& splitter,
          OverflowInserter& overflows, LocationCache& locations)
      : pool_(pool),
        locks_(locks),
        views_(views),
        writer_(writer),
        splitter_(splitter),
        overflows_(overflows),
        locations_(locations) {}

  // One attempt.
  Task<Attempt> Try(ChangeContext& context) {
    if (context.attempt == 0) context.rival.reset();  // the pin under which it was seen may be gone
    if (locations_.enabled() || context.rival.has_value()) return TryWhereSeen(context);
    return TryChange(context);
  }

 private:
  // By a look at all places of the key.
  Task<Attempt> TryChange(ChangeContext& context);
  // The key was found, or all of its places were read, into the view: decides, and changes what was found or
  // inserts the key. With kHeld, the lock of the key's unit is held, and stays so unless there is a `split`
  // of the unit, which releases it: an insert goes along with the split, and any other change is tried again
  // after it.
  Task<Attempt> ChangeFound(ChangeContext& context, View* view, const std::optional<Found>& found,
                            const BlockBuffer& block, Locking locking, Split* split = nullptr);
  // What the change makes of the value that was found; and the draft of its block, if there is one. It may
  // lack room.
  Result<Decision> DecideAndDraft(ChangeContext& context, const std::optional<Found>& found);
  // The key is not in the view.
  Task<Attempt> InsertAbsent(ChangeContext& context, const View& view);
  // The entry that takes the place of this one.
  static Entry Successor(const ChangeContext& context, const Slot& slot, bool removes);
  // Replaces an entry by this one, whose block is the draft's unless it `removes`.
  Task<Written> Write(ChangeContext& context, const Slot& slot, Entry desired, bool removes, Locking locking);
  // This client's CAS has taken the block out of the table.
  void RetireReplaced(const ChangeContext& context, const Slot& slot, uint64_t block_bytes);
  // The key's entry stands in the slot by now.
  void Remember(const ChangeContext& context, Slot slot, Entry entry);
  // The entry stands in a unit that is not split yet: splits it. False: there is no memory for that, but the
  // entry can be removed where it is, under the lock.
  Task<bool> BringUpToDate(const KeyAccess& at, const Slot& slot, bool removes);

  // ---- where the key was seen (changer_where_seen.cc)
  // Goes on as TryChange if the key is not there.
  Task<Attempt> TryWhereSeen(ChangeContext& context);
  // Of these, an empty result: the key is not there any more, or what was seen does not count any more.
  Task<std::optional<Attempt>> TryRemembered(ChangeContext& context);
  Task<std::optional<Attempt>> ChangeUnseen(ChangeContext& context, Location known);
  Task<std::optional<Attempt>> TryRival(ChangeContext& context);
  // A CAS of the slot has failed, and has found this entry. `seen`: the one that it expected was seen by this
  // operation.
  static void NoteRival(ChangeContext& context, Slot slot, Entry found, bool seen);
  // Whether the change may end as if it had taken effect just before the rival (shard/12).
  static bool MayYield(const ChangeContext& context, const Rival& rival, const pool::BlockView& block);

  // ---- in careful mode (changer_locked.cc)
  // A key that is in level 1, or belongs there, is changed under the lock of its unit, which the trip that
  // reads it takes. Empty: the view is out of date, or the key is in level 2 or 3; the attempt goes on as
  // outside of careful mode.
  Task<std::optional<Attempt>> TryChangeLocked(ChangeContext& context);
  Task<std::optional<Attempt>> ChangeUnderLock(ChangeContext& context, View& view);
  Task<Attempt> InsertUnderLock(ChangeContext& context, View& view);

  // ---- after a resize (changer_with_split.cc)
  // The trip that reads also takes the lock of the unit that the key's unit is split from. Empty: it was
  // split already; `met` is the key's bucket, if that was read.
  Task<std::optional<Attempt>> TryChangeWithSplit(ChangeContext& context, Bucket& met);
  Task<std::optional<Attempt>> ChangeWithSplit(ChangeContext& context, View& view, Split& split);
  Task<Attempt> InsertWithSplit(ChangeContext& context, Split& split);
  Task<bool> EnsureChoices(ChangeContext& context, View& view, uint32_t version);

  pool::PoolClient& pool_;
  UnitLocks& locks_;
  ViewReader& views_;
  SlotWriter& writer_;
  Splitter& splitter_;
  OverflowInserter& overflows_;
  LocationCache& locations_;
};

}  // namespace farside::index::shard
