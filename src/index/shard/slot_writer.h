// Changing one entry.
#pragma once

#include "farside/task.h"
#include "index/kit/draft.h"
#include "index/shard/bucket.h"
#include "index/shard/context.h"
#include "index/shard/unit_locks.h"

namespace farside::index::shard {

enum class Locking : uint8_t {
  kIfCareful,  // as the directory demands
  kHeld,       // the lock of the unit is held
  kTake,       // the lock is taken
};

// What came of a change of an entry.
struct Written {
  bool done = false;
  Entry found;  // not done, and not under a lock: what the slot held instead
};

// The entry that names the draft's block.
inline Entry EntryFor(const Draft& draft, uint64_t tag) {
  return Entry::Of(draft.at().offset, draft.bytes(), tag);
}

class SlotWriter {
 public:
  explicit SlotWriter(UnitLocks& locks) : locks_(locks) {}

  // CAS of an entry, behind the WRITE of the draft's block if there is one.
  Task<Written> Write(const Access& at, const Slot& slot, Entry desired, Draft* draft, Locking locking);
  // Without a look at the directory.
  static Task<Written> CasSlot(fabric::Op& op, const Slot& slot, Entry desired, Draft* draft);
  // For a planted bug: a CAS from whatever the slot holds.
  static Task<Written> WriteSlot(fabric::Op& op, const Slot& slot, Entry desired, Draft& draft);

 private:
  Task<Written> WriteLocked(Access at, const Slot& slot, Entry desired, Draft* draft);

  UnitLocks& locks_;
};

}  // namespace farside::index::shard
