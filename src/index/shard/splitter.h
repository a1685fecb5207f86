// Splitting a unit in two, when an operation wants to write to it and the table has grown: [CAS lock, READ],
// then [WRITE the new unit, WRITE the old one, CAS unlock]. The insert that caused it goes along.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "farside/task.h"
#include "index/kit/draft.h"
#include "index/shard/context.h"
#include "index/shard/split.h"
#include "index/shard/unit_locks.h"
#include "index/shard/unit_reader.h"
#include "pool/client.h"

namespace farside::index::shard {

// An insert that goes along with a split.
struct FoldedInsert {
  const KeyAccess& at;
  Draft& draft;
  bool absent = false;  // the key was looked for under the lock, and is not in the table
};

class Splitter {
 public:
  Splitter(pool::PoolClient& pool, UnitLocks& locks, UnitReader& units)
      : pool_(pool), locks_(locks), units_(units) {}

  // Splits what decides about the number, step by step, until it has the version of the directory.
  Task<Done> SplitFor(Access at, Candidate candidate, uint64_t number);
  // The same from a bucket that was found to be behind, with a key that is not in the table as the last entry
  // of it. False: another client was faster, or there was no room; nothing was inserted.
  Task<bool> SplitWith(const KeyAccess& at, const Bucket& bucket, Draft& draft);
  // The lock of the unit is held, taken over from a client that may have died while it split the unit.
  Task<Done> FinishSplit(Access at, uint64_t unit);

  // ---- for a change that has locked the unit and read it, to split it by the trip that changes it
  // Splits the unit, unlocks it, and returns whether the insert was published.
  Task<bool> SplitUnderLock(Access at, Split& split, FoldedInsert* insert);
  // The split has failed. If that was before it was written, what it has allocated is given back.
  void FreeUnwritten(const Access& at, Split& split);

 private:
  // From `version` to the next one. True if the insert was published with it.
  Task<bool> SplitStep(Access at, uint64_t unit, uint32_t version, FoldedInsert* insert);

  // ---- dividing (splitter_divide.cc)
  Task<Done> Divide(Access at, Split& split, const AddedEntry* added);
  Task<Done> DivideOverflow(Access at, Split& split);
  Task<Line> LayOut(Access at, Split& split, std::span<const Entry> entries);
  Task<Done> RefreshTags(Access at, const Split& split, std::vector<Entry>& entries, bool level1);
  Task<std::vector<KeyHash>> ReadHashes(Access at, std::span<const Entry> entries);

  // ---- overflow bits (splitter_overflow.cc)
  Task<Done> ProveOverflow(Access at, Split& split);
  // The lines of level 2 of all units there may be, without the nodes behind them. None: other clients were
  // splitting meanwhile, and a key that they moved could be missing.
  Task<std::vector<Overflow>> ReadLevel2(Access at, uint32_t newest);
  // What is in the line and in the nodes behind it.
  Task<Done> AppendEntries(Access at, Overflow& overflow, std::vector<Entry>& entries);

  // ---- writing (splitter_write.cc)
  Task<Done> WriteSplit(Access at, Split& split, Draft* draft, bool unlock);
  Task<Done> WriteNodes(Access at, const Split& split);

  pool::PoolClient& pool_;
  UnitLocks& locks_;
  UnitReader& units_;
};

}  // namespace farside::index::shard
