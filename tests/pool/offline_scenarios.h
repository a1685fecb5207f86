// Scenarios for clients that go offline and come back (presence.cc). Each returns what went wrong, or
// nothing; they are played with and without planted bugs.
//
// Some are played once for every event at which a trip can be held up, so that other clients act in the
// middle of it.
#pragma once

#include <string>

#include "tests/pool/manual_client.h"

namespace farside::pool {

// The pulse that says offline is late at one node, and its client comes back meanwhile.
std::string TheOfflinePulseIsLate();
// A client is told to go offline while a verb of it is on its way that no coroutine awaits.
std::string AVerbIsOnItsWayWhenItsClientShouldGoOffline();
// A client is told to go offline while it has an operation in flight.
std::string AnOperationIsInFlightWhenItsClientShouldGoOffline();
// A client comes back, and its pulse is late at the node of the block that its operation reads.
std::string ThePulseOfAReturnIsLate();
// A client comes back while another one announces something in the line of a listener, and waits for grace.
std::string AnAnnouncementIsMadeWhileAClientComesBack();
// A table with a counter to which syncs add is dropped, and its memory is used again after one grace, while a
// client that has something to add goes offline, comes back, or syncs for the second time.
std::string ATableIsDroppedWhileAClientGoesOffline();
std::string ATableIsDroppedWhileAClientIsOffline();
std::string ATableIsDroppedWhileAClientSyncs();
// A look at the registry is answered late. All clients were offline; since then one has begun to read a
// block, and the one that looks has unlinked it.
std::string ALookIsAnsweredLate();
// A client that was offline retires a block, and another one sweeps before it is given back.
std::string ABlockIsRetiredAfterAReturn();
// A client that is offline gives up its chunk, with a leak of a dead client in it whose slot is released.
std::string AClientGivesUpItsChunksAfterADeath();

}  // namespace farside::pool
