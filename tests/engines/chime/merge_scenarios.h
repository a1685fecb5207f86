// Scenarios for the chime table in which leaves become empty and go. Each returns what went wrong, or
// nothing; they are played with and without planted bugs.
#pragma once

#include <string>

#include "tests/engines/chime/delete_heavy_workload.h"
#include "tests/engines/chime/world.h"

namespace farside::index::chime {

using fabric::sim::FaultKind;

// A key goes, and its leaf with it. A client that remembers that leaf still finds the key when it comes back:
// in the heir, and after the leaf has become part of something else.
std::string KeyGoesAndComesBack(bool inline_keys, bool reused);

// A client that learns that a leaf has gone does not know any more where it found keys: one of them may have
// been there.
std::string KnownPlacesAreForgotten(bool inline_keys);

// A leaf is split, which the reader does not know, and then goes: a client that does it dies, at every verb,
// in every way. What was split away is still there.
std::string ALeafIsSplitAndGoes(bool inline_keys, size_t nodes);

// Leaves go, one behind the other, and a client that merges the first dies, at every verb, in every way. A
// client that remembers the first one puts its key back.
std::string TwoLeavesGo(bool inline_keys);

// A cursor stands at a leaf that goes, and whose memory becomes part of something else.
std::string CursorStandsAtALeafThatGoes(bool inline_keys);

// A client deletes a key and dies, at every verb of that and of the merge, in every way; others remember the
// leaf.
std::string DeleterDies(bool inline_keys, size_t nodes = 1);

// A client that has read a parent, and not yet taken note of it, learns by another of its operations that a
// leaf has gone.
std::string TwoOperationsLearnOfAMerge(uint64_t seeds);

// The same, and the client is asleep while the leaf goes: what it has read before arrives afterwards.
std::string AnOldReadArrivesLate(uint64_t seeds);

// Many keys come and go, again and again, each time others; by several clients, in turn or at once, from an
// empty table on. If they took turns, the first node of each level is left, and nothing is leaked.
std::string KeysComeAndGo(bool inline_keys, size_t nodes);

// A client waits for the lock of one that has fallen asleep with it. Meanwhile a third one waits for the
// others to move on.
std::string ClientWaitsForALock();

// A client waits for a lock that another one keeps, and a third one drops the table.
std::string TableIsDroppedUnderAWaiter();

}  // namespace farside::index::chime
