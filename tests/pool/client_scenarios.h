// Scenarios for whole clients of a pool. Each returns what went wrong, or nothing; they are played with and
// without planted bugs.
#pragma once

#include <string>

#include "tests/pool/manual_client.h"

namespace farside::pool {

// A chunk with a leak loses its owner after the adopter has looked at the chunk table, and before it has
// swept. A client that releases the slot without a second look never finds the leak.
std::string ChunkLosesItsOwnerDuringTheSweep();

// The only client that is dead has left memory, and the one that lives cannot tell what is reachable. A
// newcomer that takes the dead one's slot nevertheless loses what it was about to give back.
std::string OnlyOneIsDeadAndHasLeftMemory();

// A client leaves that has not heard of a death, with a leak of the dead one in its chunk. A newcomer that
// has released the slot before loses it.
std::string LeaverHasNotHeardOfTheDeadWhenANewcomerComes();

}  // namespace farside::pool
