// Inserting a key whose bucket of level 1 has no unused slot: into a hole of the bucket, into level 2, or
// into level 3. Rare, so it may cost a lock (shard/1).
#pragma once

#include <cstdint>

#include "farside/task.h"
#include "index/kit/context.h"
#include "index/kit/draft.h"
#include "index/shard/context.h"
#include "index/shard/slot_writer.h"
#include "index/shard/splitter.h"
#include "index/shard/unit_locks.h"
#include "index/shard/view.h"
#include "index/shard/view_reader.h"
#include "pool/client.h"

namespace farside::index::shard {

class OverflowInserter {
 public:
  OverflowInserter(pool::PoolClient& pool, UnitLocks& locks, ViewReader& views, Splitter& splitter)
      : pool_(pool), locks_(locks), views_(views), splitter_(splitter) {}

  // Reads everything again, under the lock, and inserts.
  Task<Attempt> Insert(const KeyAccess& at, Draft& draft);
  // The key is nowhere in the view, the bucket has no unused slot, and the lock is held.
  Task<Attempt> InsertUnderLock(const KeyAccess& at, View& view, Draft& draft);
  // The client that holds a second lock, which could not be taken, may be dead. No lock may be held.
  Task<Done> HelpBusy(const KeyAccess& at, const View& view);

 private:
  Task<Attempt> CheckAndInsert(const KeyAccess& at, View& view, Draft& draft);
  Task<Done> BringOverflowsUpToDate(const KeyAccess& at, const View& view);
  Task<Done> SetOverflow(const KeyAccess& at, const Bucket& bucket);
  // Into level 2 or 3. Sets view.busy if the line's own lock cannot be taken.
  Task<Attempt> InsertIntoChoice(const KeyAccess& at, View& view, Candidate candidate, Draft& draft);
  Task<Attempt> Fill(const KeyAccess& at, const Overflow& overflow, Candidate candidate, Draft& draft);
  Task<Attempt> AppendNode(const KeyAccess& at, const Overflow& overflow, Entry entry, Draft& draft);

  pool::PoolClient& pool_;
  UnitLocks& locks_;
  ViewReader& views_;
  Splitter& splitter_;
};

}  // namespace farside::index::shard
