// A durable pool whose node loses power, again and again, while clients make and drop tables.
//
// The durable memory is a second copy of the region. A Call of the pool copies lines to it; other words are
// copied at any time, as caches do. What is in it after the cut is put in order and opened: every table that
// was reported as made must be there, whole; none that was reported as dropped; and fsck accounts for every
// byte.
#pragma once

#include <cstdint>
#include <string>

namespace farside::pool {

// Three cuts, and an opening after each. What is wrong, or empty.
std::string RunPowerCuts(uint64_t seed);

// Two nodes, which lose power one at a time, while clients live on; and then no more.
std::string RunPowerCutsOfNodes(uint64_t seed);

}  // namespace farside::pool
