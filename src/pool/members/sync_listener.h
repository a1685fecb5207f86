// A table that takes part in every sync of its node: it adds to a counter in far memory, and learns what
// other clients have changed in a line of its own, without a trip of its own.
//
// INVARIANT pool/4: the line is READ behind the epoch, in the same trip or a later one. So an operation that
// knows epoch e knows the line as it was at e, or newer: when every live client has published more than e,
// every operation in flight knows what was in the line before a client read e.
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

class SyncListener {
 public:
  virtual ~SyncListener() = default;
  // Called when a sync is about to be posted. What it says is added once; if the trip is lost, perhaps not at
  // all.
  virtual SyncRequest BeforeSync() = 0;
  // The line, as the sync has READ it. Syncs may end in another order than they began.
  virtual void AfterSync(std::span<const std::byte, kLine> line) = 0;
  // It was added while a sync was under way, which has read the epoch without it: what it knows may be older
  // than that.
  virtual void MissedSync() = 0;
};

}  // namespace farside::pool
