// Two clients of a shard table that meet at one moment of a resize, over many seeds. As in scenarios.h, each
// scenario returns what went wrong, or nothing, and is played with and without planted bugs.
#pragma once

#include <string>

#include "tests/engines/shard/scenarios.h"

namespace farside::index::shard {

// Two insert one key of a unit that is behind: a client that only knows that a resize was announced, under
// the lock; and a client that knows that it counts and has met so many units that were split that it looks
// first. What it has seen may be over when it has the lock, and the insert must not go along with the split
// then.
std::string KeyIsInsertedBeforeItsUnitIsSplit(uint64_t seeds);

// A client that only knows that a resize was announced puts a key into level 2, under the lock of the key's
// bucket. On its way it learns that the resize counts: then a client may be splitting the line that it has
// read, which stands in another unit.
std::string LineIsSplitWhileItIsFilled(uint64_t seeds);

// A client reads the directory for the first time while another announces a resize, which fills in a part of
// it.
std::string DirectoryIsReadWhileAResizeIsAnnounced(uint64_t seeds);

}  // namespace farside::index::shard
