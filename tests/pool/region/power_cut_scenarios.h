// Power cuts of one node of several, step by step.
#pragma once

#include <string>

namespace farside::pool {

// Given a client that makes a table of two nodes, and has put its root on one of them.
// When that node loses its power, another client joins, adopts and sweeps, and then the first goes on.
// Expect that the table is there, and its root was not given away. What is wrong, or empty.
std::string ATableIsMadeWhileANodeOfItLosesPower();

}  // namespace farside::pool
