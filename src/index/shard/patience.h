// How long an operation on a shard table that meets others goes on trying: see index/common/patience.h.
//
// INVARIANT shard/10: an operation takes a new pin only if no catalog has changed since it began, as far as it knows.
#pragma once

#include "index/common/patience.h"

namespace farside::index::shard {

class Patience : public index::Patience {
 public:
  using index::Patience::Patience;
  bool MayPinAgain() const;
};

}  // namespace farside::index::shard
