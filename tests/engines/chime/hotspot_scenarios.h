// Scenarios in which a client remembers where it found keys, and others have changed that since. Each returns
// what went wrong, or nothing; they are played with and without planted bugs.
#pragma once

#include <string>

#include "tests/engines/chime/scenarios.h"

namespace farside::index::chime {

inline OptionMap WithHotspots(OptionMap options, uint64_t bytes = 1 << 16) {
  options["hotspot"] = std::to_string(bytes);
  return options;
}

// What the one that remembers does first with a key whose place is no longer what it was.
enum class Does : uint8_t { kGet, kUpdate, kPut, kDelete };

// A key is deleted, and another one stands where it was; `again`: and then it is inserted once more, beside
// that one.
std::string AnotherKeyStandsThere(bool inline_keys, bool again);

// A client has found all keys of a leaf. Then another one inserts a key for which some of them move (`moves`
// as in CrowdFor) or leave for a new leaf, and changes some.
std::string RememberedKeysGoElsewhere(bool inline_keys, size_t moves);

// A client inserts a key for which others move or the leaf is split, while a client that has found all of
// them changes half and looks for the others.
std::string SpeculationMeetsAMove(uint64_t seeds, bool inline_keys, size_t moves);

// What a client remembers of keys stays within what it was told.
std::string HotspotsWithABound();

}  // namespace farside::index::chime
