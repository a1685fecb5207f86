// Clients of a shard table that change keys where they remember them (shard/11). As in scenarios.h, each
// scenario returns what went wrong, or nothing, and is played with and without planted bugs.
#pragma once

#include <string>

#include "tests/engines/shard/scenarios.h"

namespace farside::index::shard {

enum class Remembered {
  kLongAgo,      // by an operation that ended before the block was unlinked
  kDuringGrace,  // by one that began before that, and ended when its client knew a newer epoch
};

// A client remembers where a key is. Another one deletes the key, and its block is used again for another key
// with the same tag, in the same slot: the word is the same. Then the first client changes the key.
std::string RememberedWordNamesAnotherKey(Remembered remembered);

enum class Meets {
  kAnnouncement,  // the client with the memory knows of it; another client knows that it counts
  kNewVersion,    // both know that it counts
};

// A client remembers where a key is. A resize is announced; and at every step of the split of the key's unit,
// the client changes the key.
std::string RememberedUnitIsSplit(Meets meets);

// A client remembers where a key is. Another one changes the key in every way, and then the first one does:
// what it is told, and what comes of it, is as if it had looked.
std::string RememberedEntryIsReplaced();

enum class Against {
  kPut,
  kIncrement,
  kCompareAndSet,
  kOverflow,  // another key goes to level 2: the overflow bit stands in the word of the key's entry
};

// A put meets another change at every step, and one that has ended before it begins. Only if that one is a
// put, and did not end before, may the put end as if it had happened just before it (shard/12). `remembers`:
// the client that puts remembers where the key was.
std::string PutMeetsARival(Against rival, bool remembers);

}  // namespace farside::index::shard
