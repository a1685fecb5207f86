// A table that takes part in every sync of its node: it adds to a counter in far memory, and learns what
// other clients have changed in a line of its own, without a trip of its own.
//
// INVARIANT pool/4: the line is READ behind the epoch, in the same trip or a later one. So an operation that
// knows epoch e knows the line as it was at e, or newer: when every live client has published more than e,
// every operation in flight knows what was in the line before a client read e.
//
// (off/3 stands below; the other rules of clients that are offline are in presence.cc.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pool/region/layout.h"

namespace farside::pool {

// What a listener asks for; offsets into the region of its node.
struct SyncRequest {
  uint64_t add_at = 0;  // a word; 0: nothing is added
  uint64_t delta = 0;
  uint64_t read_at = 0;  // a line
};

class Membership;

class SyncListener {
 public:
  virtual ~SyncListener() = default;
  // Called when a sync is about to be posted. What it says is added once; if the trip is lost, perhaps not at
  // all. If not `may_add`, nothing is added, and what there is to add waits for another sync.
  virtual SyncRequest BeforeSync(bool may_add) = 0;
  // The line, as the sync has READ it. Syncs may end in another order than they began.
  virtual void AfterSync(std::span<const std::byte, kLine> line) = 0;
  // It was added while a sync was under way, which has read the epoch without it: what it knows may be older
  // than that.
  virtual void MissedSync() = 0;

  // The table of the listener existed when so many changes of the catalog of its home were known (catalog/5).
  // A listener that is never told belongs to no catalog, and may always add.
  void ConfirmTable(const Membership& home, uint64_t catalog_changes) {
    home_ = &home;
    confirmed_at_ = catalog_changes;
  }
  // INVARIANT off/3: a sync adds to far memory of a table only while its client knows of no change of the
  // catalog since the table was last seen there. A sync publishes first and adds then: when it has published,
  // a client that drops the table does not wait for it any more.
  bool MayAdd() const;

 private:
  const Membership* home_ = nullptr;
  uint64_t confirmed_at_ = 0;
};

}  // namespace farside::pool
