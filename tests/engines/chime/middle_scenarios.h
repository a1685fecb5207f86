// Scenarios at the middle of the keys: with keys=inline, no leaf and no parent of leaves has keys on both
// sides of it (chime/11). Each returns what went wrong, or nothing; they are played with and without planted
// bugs.
#pragma once

#include <string>

#include "base/random.h"
#include "index/chime/key.h"
#include "tests/engines/chime/hotspot_scenarios.h"
#include "tests/engines/chime/world.h"

namespace farside::index::chime {

inline std::string KeyOfNumber(uint64_t number) { return TextOf(number, kPrefixBytes); }

// Keys of both halves come, change and go, in several orders; at the end all of them go, so that leaves are
// merged up to the middle from both sides.
std::string KeysOfBothHalves(const OptionMap& shape, size_t nodes = 1);

// A client inserts a key for which parents are split, and dies, at every verb, in every way. Pivots are
// missing then, and a client that looks for a key whose twin is in the leaf to the left of it does not find
// that one.
std::string ParentsAreSplitByTheDead(size_t fanout, bool with_fsck = true);

// A client remembers where it found a key, and looks for its twin, whose hash is so like the key's that
// hotspots cannot tell.
std::string TwinsWithHashesThatAreAlike();

}  // namespace farside::index::chime
