// Scenarios for a nessie table in a pool without free memory, where deletes write their tombstones to the
// spare lines of the root. Each returns what went wrong, or nothing; they are played with and without planted
// bugs.
#pragma once

#include <string>

namespace farside::index::nessie {

// A key is inserted that is there: no memory is needed to refuse that.
std::string RefusedInsertInAFullPool();
// A client dies in the middle of a delete, at every verb. The next delete needs the line that it had.
std::string DiesWithASpareLine();
// A client has found what a dead one left on a spare line, and stops at every step. Meanwhile another one
// takes the line over, and deletes the same key.
std::string SlowClientMeetsASpareLine();
// A delete is destroyed at every step behind its entry. Its client deletes the key once more.
std::string DeleteIsDestroyedBehindItsEntry();

}  // namespace farside::index::nessie
