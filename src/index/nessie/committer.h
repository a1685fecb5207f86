// From a pending entry to the end of the change: what the writer does by what it finds in the key's other
// slot, and in the slots that its own may have been split into.
//
//   nessie/2  Of two copies of a key, only the source (fewer moves) is removed.
//   nessie/3  A pending entry commits only if its writer has looked, behind it, at all slots where the key
//             may stand, and found there neither a value, nor a claim, nor a mark; or removed them.
//   nessie/4  Of two fresh entries (over no value), the one in the secondary slot gives way. A fresh entry
//             gives way to any that replaces a value.
//   nessie/6  Only its writer touches the entry of a live writer.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "farside/task.h"
#include "index/kit/context.h"
#include "index/nessie/cleaner.h"
#include "index/nessie/context.h"
#include "index/nessie/layout.h"
#include "index/nessie/trail.h"
#include "pool/client.h"

namespace farside::index::nessie {

// A pending entry of this client.
struct OwnEntry {
  Candidate candidate = Candidate::kPrimary;
  size_t step = 0;  // of the candidate's trail: where it stands
  Word pending;
  Word replaced;           // live: it replaces a value; otherwise it is fresh
  uint32_t moves = 0;      // of the item that it replaces
  uint64_t bytes = 0;      // of the item whose place it takes
  bool removes = false;    // it deletes the key
  uint64_t own_bytes = 0;  // of its own item

  bool is_fresh() const { return !replaced.is(Kind::kLive); }
};

class Committer {
 public:
  Committer(pool::PoolClient& pool, Nanos backoff, Cleaner& cleaner)
      : pool_(pool), backoff_(backoff), cleaner_(cleaner) {}

  // The trip that makes the entry pending, with the look behind it. `cas` turns the slot to own.pending.
  // False: it failed, and own's step has the word that is there.
  Task<bool> Place(ChangeContext& context, OwnEntry own, fabric::AtomicVerb cas, Look& look);
  // The entry is pending, and the look was read behind it. True: it is committed. False: it was taken back,
  // and the change starts anew. Also an error has taken it back, unless this client can do nothing any more.
  Task<bool> Conclude(ChangeContext& context, OwnEntry own, Look& look);

 private:
  enum class Verdict : uint8_t {
    kCommit,
    kGiveWay,  // what was there before comes back
    kMoved,    // the value stands elsewhere: nothing comes back
    kWait,     // look again
    kAgain,    // the look was changed: decide anew
  };
  Task<bool> ConcludeOrFail(ChangeContext& context, OwnEntry own, Look& look);
  Task<Verdict> Decide(ChangeContext& context, const OwnEntry& own, Look& look);
  Task<Done> RemoveMarks(const Access& at, Trail& trail, size_t end);
  Task<Verdict> DecideByPending(ChangeContext& context, const OwnEntry& own, Trail& trail, const Item& item);
  Task<Verdict> DecideByLive(const Access& at, const OwnEntry& own, Trail& trail, const Item& item);
  Task<Done> ReadAgain(const Access& at, Trail& trail);
  Task<bool> Commit(ChangeContext& context, const OwnEntry& own, uint64_t slot);
  Task<Done> TakeBack(const Access& at, const OwnEntry& own, uint64_t slot, bool moved);

  pool::PoolClient& pool_;
  const Nanos backoff_;
  Cleaner& cleaner_;
};

}  // namespace farside::index::nessie
