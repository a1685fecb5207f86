// Searches.
//
// A slot that has the key is enough for a hit: what it says was true when the slot was sampled, or just
// before the slot lost the key to its child (nessie/8). A miss needs both slots as they were at one moment:
// their words are read twice and have to be equal, in whatever order READs take effect, because no word comes
// back (nessie/7). A pending entry counts with the value before it.
//
// A search never waits: with all other clients stopped it ends after at most four trips, and one more for
// an item of more than 960 bytes (docs/engines/nessie.md).
#pragma once

#include "farside/task.h"
#include "index/nessie/context.h"

namespace farside::index::nessie {

// One attempt. kContended if the words changed all the time.
Task<bool> SearchKey(SearchContext& context);

}  // namespace farside::index::nessie
