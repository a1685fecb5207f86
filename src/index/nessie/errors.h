// Errors of a nessie table.
#pragma once

#include <cstdint>

#include "farside/result.h"
#include "index/nessie/partition.h"

namespace farside::index::nessie {

// Neither a slot nor any of its parents is in use.
Error BrokenTrail(const Partition& part, uint64_t slot);
// A slot has a word that no client writes.
Error BrokenWord(const Partition& part, uint64_t slot);
// Another client's change of a slot that this one needs is under way.
Error AwaitsWriter();
// A search met too many changes.
Error Unsettled();
// The table is about to grow.
Error AwaitsGrowth();
// There is no place for the key, and the table cannot grow.
Error NoPlace();
// The table has found no memory to grow.
Error NoMemoryToGrow();
// A pending entry of this client is gone: another client has taken it for dead.
Error TakenForDead();

}  // namespace farside::index::nessie
