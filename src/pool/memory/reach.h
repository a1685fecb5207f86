// What is reachable: the answer of a walk through the tables, block by block.
//
// A walk promises, for every block that can be reached from a table when it begins and is not unlinked before
// it ends, to Mark it at least once; a block that is moved from one place to another stays reachable
// throughout. What another client may still publish or retire on behalf of a dead one (because the redo
// record of a lock names it, say) counts as reachable, and so does a block that its owner keeps between
// operations and has not published yet. While no client changes a table, each of its blocks is marked exactly
// once: fsck takes a second time for damage.
#pragma once

#include <cstdint>

#include "fabric/address.h"

namespace farside::pool {

class Reach {
 public:
  virtual ~Reach() = default;
  // `bytes` as asked for when the block was allocated, or anything of the same size class. May be called more
  // than once for a block that is moved meanwhile, and with addresses of other nodes.
  virtual void Mark(fabric::FarAddr block, uint64_t bytes) = 0;
  // The same, for a key and its value (pool/memory/block.h) behind `prefix` bytes of something else: a record
  // of the table.
  virtual void MarkBlock(fabric::FarAddr block, uint64_t bytes, uint64_t /*prefix*/) { Mark(block, bytes); }
  // Records that have no blocks of their own, but stand in something that is marked.
  virtual void CountRecords(uint64_t /*records*/) {}
};

}  // namespace farside::pool
