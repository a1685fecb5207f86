// Scenarios for the chime table. Each returns what went wrong, or nothing; they are played with and without
// planted bugs.
#pragma once

#include <string>

#include "tests/engines/chime/world.h"

namespace farside::index::chime {

using fabric::sim::FaultKind;

inline OptionMap SmallLeaves(bool inline_keys) {
  return {{"keys", inline_keys ? "inline" : "bytes"}, {"span", "8"}, {"neighbourhood", "2"}, {"fanout", "4"}};
}
inline Shape SmallShape(bool inline_keys) {
  return {.span = 8, .neighbourhood = 2, .fanout = 4, .inline_keys = inline_keys};
}

// A client inserts a key for which others have to move (or for which the leaf is split), while others look
// for those.
std::string ReadersMeetAMove(uint64_t seeds, size_t moves, bool by_scan);

// A client that inserts a key dies, at every verb and in every way; others go on. `moves` as in CrowdFor.
std::string InserterDies(bool inline_keys, size_t moves, size_t nodes = 1);

// A client splits a leaf and dies before the parent knows. A client that comes along the sibling tells the
// parent, so that no client has to after it.
std::string ParentHasNoPivot();

// A client remembers the inner nodes of before; then another splits leaves, and it scans.
std::string ScanWithOldNodes();

// Two keys that differ behind their first 8 bytes only, and have the same tag.
std::string TwoKeysWithOneTag();

// No key and no value is reserved.
std::string KeysOfZerosAndOnes();

// An update of a key that is not there leaves no lock.
std::string UpdateOfAnAbsentKey();

// What a client remembers stays within what it was told.
std::string CacheWithABound();

}  // namespace farside::index::chime
