// Scenarios for the shard table in which a client dies, at an exact verb. Each returns what went wrong, or
// nothing; they are played with and without planted bugs.
#pragma once

#include <string>

#include "tests/engines/shard/expected_values.h"
#include "tests/engines/shard/world.h"

namespace farside::index::shard {

using fabric::sim::FaultKind;

struct SplitOptions {
  OptionMap shape = {{"slots", "8"}, {"overflow_slots", "2"}};
  uint32_t version = 1;  // when the keys are put; the units are split from there
  uint32_t behind = 1;   // resizes until they are split
  int keys = 4;
};

// Keys of one unit of level 1; a client that wants to put one of them dies at some verb, and so at some point
// of the split. One survivor knows the new version, one only that it was announced. Every verb in turn, every
// way to die.
std::string OwnerDiesInASplit(const SplitOptions& options);

// Two clients want to write to the same unit: a client that knows the new version, and so splits it, and a
// client that only knows that it was announced. A third one reads. One of them may die, at any verb.
std::string TwoMeetInASplit(OptionMap shape, uint64_t seeds);

// A resize was announced, so changes are made under locks. A client dies with the lock of a unit; another
// client wants to put a key that overflows into level 2 of that unit, and holds another lock already.
std::string DeadOwnerOfASecondLock();

enum class Resizing { kAnnounces, kActivates };

// A client resizes the table and dies at some verb: while it prepares the segment or announces it, or while
// it makes it count. Every verb in turn, every way to die; others carry on.
std::string GrowerDies(Resizing what);

enum class CarefulChange { kUpdate, kAppend, kFillHole, kToLevel2, kToLevel3, kDelete, kDeleteFromLevel3 };

// While a resize is announced, a client changes a key, and so holds a lock; it dies at some verb. Every verb
// in turn, every way to die; the next writers of the unit take over, before the resize counts and after.
std::string CarefulWriterDies(CarefulChange change);

// A writer waits for a lock that a dead client has left, and meanwhile finds another one dead and sweeps
// after it. What it is about to write is neither free nor reachable then. Every verb of the first one's death
// in turn.
std::string WriterSweepsWhileItWaits();

}  // namespace farside::index::shard
