// Scenarios for a client that finds no room (room.h). Each returns what went wrong, or nothing; they are
// played with and without planted bugs.
#pragma once

#include <string>

#include "tests/pool/manual_client.h"

namespace farside::pool {

// A client has freed all of its chunks, is offline, and only keeps up.
std::string AnIdleClientOwnsEmptyChunks();
// A client owns the only chunk of a size, with one block in use, is offline, and rests as sessions do.
std::string AnIdleClientOwnsASparseChunk();
// The same, and three tasks of the other client search at once.
std::string TasksSearchTogether();

}  // namespace farside::pool
