// Searches.
//
// A slot that has the key is enough for a hit: what it says was true when the slot was sampled, or just
// before the slot lost the key to its child (nessie/8). A miss needs both slots as they were at one moment:
// their words are read twice and have to be equal, in whatever order READs take effect, because no word comes
// back (nessie/7). A pending entry counts with the value before it.
//
// A search never waits. With all other clients stopped, and both homes of the key in use, it ends after three
// trips: look, items, and the item before a pending one or a second look. (Four, if a tombstone without a key
// turns out to be that of another key with the same hash.) A home that is unsplit costs the
// first look one more trip, unless it was expected; an item of more than 960 bytes costs one more where it is
// read.
#pragma once

#include "farside/task.h"
#include "index/nessie/context.h"

namespace farside::index::nessie {

// One attempt. kContended if the words changed all the time.
Task<bool> SearchKey(SearchContext& context);

}  // namespace farside::index::nessie
