// The move log: which keys were moved to lower slots, for cursors.
//
// A cursor reads slots by rising numbers. A key that it has not met yet, and that moves to a slot behind it,
// would be missed. So every migration to a lower slot takes a number, and enters the hash of its key under
// that number before its copy counts. A cursor reads the entries that were made since it began, and looks
// those keys up. (A split moves keys to higher slots.)
//
//   nessie/11  A copy in a lower slot becomes live only behind its entry. A cursor ends only when all entries
//              of the moves that were counted when it had read all slots were read. One that does not come is
//              that of a client which died or sleeps, or was overwritten by a client that has slept while the
//              log came round: then the cursor starts anew.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/nessie/partition.h"

namespace farside::index::nessie {

// How many moves there were.
Task<uint64_t> CountMoves(fabric::Op& op, const Partition& part);

// What a cursor has to look up.
struct MovedKeys {
  bool is_complete = false;  // false: entries were overwritten before they were read
  uint64_t next = 0;         // entries before this one need not be read again
  std::vector<uint64_t> hashes;
};
// `count`: of moves, as it was read before.
Task<MovedKeys> ReadMoves(fabric::Op& op, const Partition& part, uint64_t since, uint64_t count);

}  // namespace farside::index::nessie
