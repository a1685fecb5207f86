// Scenarios for a sephash table in a pool without free memory, where merges take the spares of the root. Each
// returns what went wrong, or nothing; they are played with and without planted bugs.
#pragma once

#include <cstdint>
#include <string>

namespace farside::index::sephash {

// A pool without free memory, in which two clients delete everything at once.
std::string TwoDeleteInAFullPool(uint64_t seeds);
// Two clients need spare memory at the same moment: each gets some of its own.
std::string TwoNeedASpare(uint64_t seeds);
// A client has found a MainSegment and falls asleep, at every step. Meanwhile the MainSegment is replaced and
// becomes spare memory, and another segment needs some.
std::string SpareIsStillRead();

}  // namespace farside::index::sephash
