// What a client does to words that other clients have written: it takes back what dead writers left, removes
// claims, clears sources and unmarks slots.
//
//   nessie/10  The client whose CAS unlinks an item retires it, and no other client.
#pragma once

#include <cstdint>

#include "farside/task.h"
#include "index/nessie/access.h"
#include "index/nessie/item.h"
#include "index/nessie/layout.h"
#include "index/nessie/running_entries.h"
#include "index/nessie/spare_lines.h"
#include "pool/client.h"

namespace farside::index::nessie {

// What came of a CAS.
struct Swapped {
  bool done = false;
  Word now;  // what the slot has, as far as is known
};

class Cleaner {
 public:
  Cleaner(pool::PoolClient& pool, SpareLines& spares) : pool_(pool), spares_(spares) {}

  // A word of this client that no slot has had before (nessie/7).
  Word NewToken(const Partition& part, Kind kind);
  RunningEntries& running() { return running_; }
  pool::Owner self(const Partition& part) { return pool_.member(part.node()).self(); }

  // Of an item that this client's CAS has unlinked. `bytes`: of the item, if they are known.
  void Retire(const Access& at, Word word, uint64_t bytes);

  // Whether the writer of a pending entry is gone for good, so that its entry may be taken back. Fences it if
  // it has been silent for a lease. An entry of this client's own is gone with its operation. (nessie/5)
  Task<bool> IsGone(Access at, pool::Owner writer, Word pending);
  // The next four change a slot by one CAS.
  // The entry of a writer that is gone: what was there before is back.
  Task<Swapped> RollBack(Access at, uint64_t slot, Word pending, const Item& item);
  // A claim, of a live client or a dead one: its migration fails.
  Task<Swapped> RemoveClaim(Access at, uint64_t slot, Word claim);
  // A live word whose item was copied to another slot.
  Task<Swapped> ClearSource(Access at, uint64_t slot, Word live, uint64_t bytes);
  // The split of the slot fails.
  Task<Swapped> Unmark(Access at, uint64_t slot, Word splitting);

 private:
  Task<Swapped> Swap(Access at, uint64_t slot, Word from, Word to);
  // The same for a word with an item, which is retired.
  Task<Swapped> Unlink(Access at, uint64_t slot, Word item, Word to, uint64_t bytes);

  pool::PoolClient& pool_;
  SpareLines& spares_;
  RunningEntries running_;
};

}  // namespace farside::index::nessie
