// Scenarios for the shard table in which a client stops for a while, and the others go on meanwhile: at every
// verb or step in turn, so that they do not depend on how many there are. Each returns what went wrong, or
// nothing; they are played with and without planted bugs.
#pragma once

#include <string>

#include "tests/engines/shard/expected_values.h"
#include "tests/engines/shard/world.h"

namespace farside::index::shard {

// What a client does to a unit while another client is in the middle of splitting it.
enum class Meanwhile { kChangesWhatMoves, kInsertsWhatStays, kChangesWhatStays };
struct KeysOfAUnit {
  OptionMap shape;
  int moving = 0;
  int staying = 0;
};
inline KeysOfAUnit KeysInOneLine() {
  return {.shape = {{"slots", "8"}, {"overflow_slots", "2"}}, .moving = 2, .staying = 2};
}
// Some of those that stay are in the second line before the split and after it.
inline KeysOfAUnit KeysInTwoLines() {
  return {.shape = {{"slots", "16"}, {"overflow_slots", "2"}}, .moving = 3, .staying = 10};
}

// A client splits a unit and falls asleep, before every verb of that in turn. Meanwhile a newcomer, which
// knows the new version and does not expect to have to split anything, changes the unit; and a client that
// only knows that the resize was announced must see what it did.
std::string SplitterFallsAsleep(const KeysOfAUnit& keys, Meanwhile meanwhile);

// What happens to a bucket that is to be split while a client is about to insert into it.
enum class Behind {
  kHasRoom,  // it has unused slots, and so the key is appended by a client that only knows the announcement
  // It has none, and so the key goes to level 2; then a third one splits it, and it has some.
  kIsFullThenSplit,
};

// A client that knows the new version inserts a key, and falls asleep after every step of that in turn.
// Meanwhile a client that only knows that the resize was announced inserts the same key.
std::string InserterFallsAsleep(Behind behind);

// A resize was announced, so changes are made under locks. A client falls asleep with the lock of a unit;
// another client needs it for a key that overflows into that unit, and waits. A client that wants to change
// the unit of that key does not have to wait for the sleeper as well.
std::string WaiterHoldsNoLock();

}  // namespace farside::index::shard
