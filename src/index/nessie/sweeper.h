// After growth, slots are split before a client needs them: so trails stay short, and searches at two trips.
//
// Puts of new keys split a few slots on average, as long as there are unsplit ones, some at a time. Clients
// take ranges of slots by a word in the root, from the lowest slot to the highest, so that parents come first
// and no two clients do the same. What a client has taken and not split, because it died or another client
// was in the way, is split when a put needs it: nothing depends on the sweep.
#pragma once

#include <cstdint>

#include "farside/task.h"
#include "index/nessie/access.h"
#include "index/nessie/splitter.h"

namespace farside::index::nessie {

class Sweeper {
 public:
  Sweeper(uint64_t slots_per_insert, Splitter& splitter)
      : slots_per_insert_(slots_per_insert), splitter_(splitter) {}

  // For every put of a new key: whether it is time to sweep.
  bool IsDue(Partition& part);
  Task<Done> Sweep(Access at);

 private:
  static Task<bool> TakeRange(const Access& at);

  const uint64_t slots_per_insert_;
  Splitter& splitter_;
};

}  // namespace farside::index::nessie
