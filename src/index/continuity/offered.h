// Memory of this client that a trip names: for the duration of the trip, and for ever if its outcome is not
// known or its operation is destroyed, it does not go back.
#pragma once

#include "index/kit/unpublished.h"
#include "pool/memory/allocator.h"

namespace farside::index::continuity {

class Offered {
 public:
  explicit Offered(Unpublished& memory) : memory_(memory), offered_(memory.owned()) {
    if (offered_) memory_.Publish();
  }
  Offered(const Offered&) = delete;
  Offered& operator=(const Offered&) = delete;

  // The trip is over, and nothing of the table names the memory.
  void TakeBack() {
    if (offered_) memory_.Unpublish();
  }

 private:
  Unpublished& memory_;
  const bool offered_;
};

// A trip that names memory of this client, or unlinks some: unless it ends with an answer, its operation does
// not know what became of that memory, and a sweep is due, which does (alloc/6).
class DueSweep {
 public:
  explicit DueSweep(pool::Allocator& allocator) : allocator_(allocator) {}
  DueSweep(const DueSweep&) = delete;
  DueSweep& operator=(const DueSweep&) = delete;
  ~DueSweep() {
    if (due_) allocator_.NoteInDoubt();
  }
  void NotDue() { due_ = false; }

 private:
  pool::Allocator& allocator_;
  bool due_ = true;
};

}  // namespace farside::index::continuity
