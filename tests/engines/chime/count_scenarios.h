// Scenarios of leaves whose header a client does not READ, because it remembers their fence with the count of
// their lock (chime/14). Each returns what went wrong, or nothing.
#pragma once

#include <string>

namespace farside::index::chime {

// Another client splits the leaf.
std::string RememberedLeafIsSplit();
// Another client merges the leaf with the one before.
std::string RememberedLeafDies();
// The client that splits the leaf dies, at every verb, and another one takes over.
std::string RememberedLeafIsTakenOver();

}  // namespace farside::index::chime
