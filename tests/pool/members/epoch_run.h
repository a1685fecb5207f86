// A structure that is nothing but reclamation: a root word that names a cell, and cells that are used again
// and again.
//
// A writer takes a free cell of its own, writes an id into it, and turns the root to it; the old cell is
// retired and used again when its stamp is safe. A reader follows the root within an operation, syncs in the
// middle of it, and must find the id that the root has told it.
#pragma once

#include <string>

#include "tests/pool/pool_run.h"

namespace farside::pool {

// What a client publishes when an operation is in flight.
enum class Publish : uint8_t {
  kOldestInFlight,  // what was known when it began, as pool/1 asks
  kNewest,          // wrong
};

struct EpochOutcome {
  std::string problem;
  uint64_t reuses = 0;
};

EpochOutcome RunEpochs(fabric::sim::SimOptions options, Publish publish, int writers = 2, int readers = 2);

}  // namespace farside::pool
