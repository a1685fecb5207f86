// An evacuation: sparse chunks of a client are emptied, so that they can be used for blocks of any size.
//
//   evac/1  A record is moved by a touch (Index::Touch): an update to the same value, which takes effect only
//           if the table still names the block that is to be emptied. So the client whose CAS, or whose lock,
//           has unlinked that block retires it, and no other client does.
//   evac/4  It runs in an operation that has failed for lack of memory, and holds neither a pin nor a place
//           in the queue of a key: a touch of that key would wait for itself. So it never runs inside of
//           Allocate. A client makes one at a time.
// evac/2, 3 and 5 are about chunks: pool/memory/allocator.h. Which are emptied: pool/memory/evacuate.cc.
//
// Blocks do not name their tables: a record is looked for in the tables that the client has open, first in
// the one that had the last record. If there are many tables, one walk finds those of up to kMostByWalk
// blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/tables.h"
#include "pool/client.h"
#include "pool/memory/allocator.h"

namespace farside::index {

class Evacuation {
 public:
  // `tables` must stay until the evacuation ends. The destructor ends it for all chosen chunks
  // (Allocator::EndEvacuation), then calls `ended`.
  Evacuation(pool::PoolClient& pool, Tables& catalog, std::vector<OpenTable*> tables,
             std::function<void()> ended);
  Evacuation(const Evacuation&) = delete;
  Evacuation& operator=(const Evacuation&) = delete;
  ~Evacuation();

  // Another table whose records can be moved. It must stay as long as the others.
  void AddTable(OpenTable& table) { tables_.push_back(&table); }
  // Chooses chunks of the nodes that have no room for what this client has last asked for.
  Task<Done> Choose(fabric::Op& op);
  // Adds chunks that the caller has chosen.
  void Add(fabric::NodeId node, std::vector<pool::Allocator::Victim> victims);
  bool has_victims() const { return !victims_.empty(); }

  // Moves what the chosen chunks hold.
  Task<Done> Move(fabric::Op& op);
  // Unlinks what tables still name although its record has moved. True: there is more to do, as soon as other
  // clients have moved on.
  Task<bool> Unlink(fabric::Op& op);

  uint64_t moved() const { return moved_; }

 private:
  struct Marked {
    fabric::NodeId node;
    uint32_t chunk;
  };
  struct Block {
    fabric::FarAddr at;
    uint64_t bytes = 0;
    OpenTable* table = nullptr;  // the one that was found to name it
  };

  // Moves one block after the other, while there are any.
  Task<Done> RunLane();
  Task<Done> MoveBlock(fabric::Op& op, Block& block);
  // False: the table does not name the block.
  Task<bool> TouchIn(fabric::Op& op, OpenTable& table, const Block& block, std::span<const std::byte> bytes);
  // Finds the tables of some of the blocks that were in none of those that were tried.
  Task<Done> FindByWalk(fabric::Op& op);
  Task<Done> RunLanes(fabric::Op& op);
  // False: it was dropped.
  Task<bool> Validate(fabric::Op& op, OpenTable& table);

  pool::PoolClient& pool_;
  Tables& catalog_;
  std::vector<OpenTable*> tables_;  // the one that had the last record first
  const std::function<void()> ended_;
  std::vector<Marked> victims_;
  std::vector<Block> blocks_;  // to be moved
  size_t next_ = 0;            // of blocks_
  std::vector<Block> unknown_;
  uint64_t moved_ = 0;
};

}  // namespace farside::index
