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

// A client dies, and a survivor sweeps tables so large that its walk takes three leases, while another client
// watches. A survivor that gives no signs of life meanwhile is fenced, and its successor has to sweep again.
std::string AWalkTakesLongerThanALease();

// An operation ends with a CAS that no coroutine awaits, and which is on its way for long. Its client syncs
// meanwhile, and another client unlinks the block and asks for it again.
std::string AVerbWithoutAWaiterOutlivesItsOperation();

// Operations follow each other so closely that a verb without a waiter is always on its way. Their client
// must publish all the same.
std::string AVerbWithoutAWaiterIsAlwaysOnItsWay();

// A client leaves, and a verb that no coroutine awaits, like the release of a lock, is on its way for long. When
// its slot is free, other clients take what it held without a FENCE.
std::string AClientLeavesWithAVerbOnItsWay();

// A chunk is evacuated while a reader is at its only block. The block waits for grace, and the chunk with it.
std::string AReaderIsAtABlockThatIsEvacuated();

}  // namespace farside::pool
