// Memory of this client that a trip names: for the duration of the trip, and for ever if its outcome is not
// known or its operation is destroyed, it does not go back.
#pragma once

#include "index/kit/unpublished.h"

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

}  // namespace farside::index::continuity
