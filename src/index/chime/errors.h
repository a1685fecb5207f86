// The errors of a chime table.
#pragma once

#include <string_view>

#include "farside/result.h"
#include "index/chime/layout.h"

namespace farside::index::chime {

// "the tree's node at 0x40 of the table's memory node 1 <what>; run farside fsck".
Error Damaged(NodePtr at, std::string_view what);
// What is wrong with a leaf that the way to a key has led to (chime/11).
inline constexpr std::string_view kOtherHalf = "has the keys of the other half of the tree";
Error Contended(std::string_view what);
// A lock names this client, and no operation of it holds the lock: an operation was destroyed on the way, or
// the memory is damaged. Another registration of the client finds the owner of the lock gone, and takes it.
Error LockedByMistake();
// An unlock found that the lock was not this client's any more.
Error LockLost();

}  // namespace farside::index::chime
