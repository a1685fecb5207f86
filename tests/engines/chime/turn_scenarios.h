// Scenarios of changes of one client that take turns at a leaf, and hand its lock over (chime/13). Each
// returns what went wrong, or nothing.
#pragma once

#include <string>

namespace farside::index::chime {

// Of four updates that wait for one leaf, one is destroyed after so many steps, at every moment of it.
std::string SuccessorIsDestroyed();
// A client always has changes of one leaf waiting; another one wants to change the leaf, too.
std::string OthersHaveTheirTurn();
// Two clients insert keys of one leaf, many at a time; all of them are there in the end.
std::string InsertsOfOneLeaf(int seeds);

}  // namespace farside::index::chime
