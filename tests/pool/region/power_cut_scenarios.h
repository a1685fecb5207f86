// Power cuts of one node of several, step by step.
#pragma once

#include <cstdint>
#include <string>

namespace farside::pool {

// Given a client that makes a table of two nodes, and has put its root on one of them.
// When that node loses its power, another client joins, adopts and sweeps, and then the first goes on.
// Expect that the table is there, and its root was not given away. What is wrong, or empty.
std::string ATableIsMadeWhileANodeOfItLosesPower();

// Given a table that is live, whose maker dies before that is durable, and a client that opens it.
// When the power is cut.
// Expect the table to be there, which the second client may have used.
std::string ATableIsOpenedBeforeItsMakerHasMadeItDurable(uint64_t seed);

// Given a table that is being dropped, whose dropper dies before that is durable, and a client that finds it
// gone.
// When the power is cut.
// Expect the table not to be there again: that client may have made another one of its name.
std::string ADropIsSeenBeforeItIsDurable(uint64_t seed);

// Given a chunk that a client has claimed, which dies before that is durable, and one that takes it over.
// When that one hands out a block of it, and the power is cut.
// Expect the word of the chunk to be there.
std::string AChunkIsTakenOverBeforeItIsDurable(uint64_t seed);

// Given the memory that a process has left which was killed, of which the disk has only a part.
// When it is opened, and then the power is cut.
// Expect all that the opening has found.
std::string PowerIsCutWhenARegionWasOpened();

// Given a client that opens a pool of two nodes, which did not know that they are one.
// When the power of either is cut.
// Expect that they know.
std::string NodesLosePowerWhenTheirPoolWasOpened(uint64_t seed);

}  // namespace farside::pool
