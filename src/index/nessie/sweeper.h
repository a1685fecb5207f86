// After growth, slots are split before a client needs them: so trails stay short, and searches at two trips.
// Every put of a new key splits a few slots besides its own, until this client has come round.
#pragma once

#include <cstdint>

#include "farside/task.h"
#include "index/nessie/context.h"
#include "index/nessie/splitter.h"

namespace farside::index::nessie {

class Sweeper {
 public:
  Sweeper(uint64_t slots_per_insert, Splitter& splitter)
      : slots_per_insert_(slots_per_insert), splitter_(splitter) {}

  static bool HasWork(const Partition& part) { return part.unswept() != 0; }
  Task<Done> Sweep(Access at);

 private:
  const uint64_t slots_per_insert_;
  Splitter& splitter_;
};

}  // namespace farside::index::nessie
