// Scenarios for the chime table in which inner nodes have one child left and go. Each returns what went
// wrong, or nothing; they are played with and without planted bugs.
#pragma once

#include <string>

#include "tests/engines/chime/world.h"

namespace farside::index::chime {

using fabric::sim::FaultKind;

// A client deletes a key, so that an inner node goes, and dies, at every verb and in every way. `first_too`:
// the leaf that the node keeps is empty, and goes as well.
std::string InnerMergerDies(bool inline_keys, bool first_too, size_t nodes = 1);

// An inner node goes, and its first leaf is not the first one any more; another client, which remembers it as
// the first, deletes its key.
std::string FirstChildHasMoved(bool inline_keys, size_t nodes);

// A client splits an inner node, and stops at every step for a while. Meanwhile another one merges inner
// nodes: the new one, if `the_new_one`, otherwise the one behind it.
std::string SplitterIsSlow(bool the_new_one);

// A client scans the leaves of an inner node that goes, learns of that by another of its operations, and
// comes to the node once more; later the memory of the node is that of another one.
std::string ScanComesToADeadParent();

// Keys go on both sides of the middle, until each half has one leaf.
std::string BothHalvesBecomeEmpty();

}  // namespace farside::index::chime
