// A table as a handler sees it, for the duration of one Call.
//
// Invariants
//   continuity/1  A pair is changed by one handler at a time, between an odd sequence and the next even one.
//                 A reader that finds the same even indicator before and after it has read a segment has read
//                 it as it was at one moment.
//   continuity/2  A slot whose bit is set is never written. A change writes a free slot, and counts from the
//                 store of the indicator that sets one bit, clears another, or both.
//   continuity/3  What a bit or a pointer leads to is durable before the bit or the pointer is stored; bits
//                 are durable before the sequence is even. So what a reader has seen is durable.
//   continuity/4  The records of a pair are copied to the next table, without being removed, and are durable
//                 there before the pair is marked as moved, and the mark is durable before the next table
//                 takes a change of them. So each record counts exactly once at any moment.
//   continuity/5  `next` becomes the current table when all pairs are marked. The client that is told so
//                 retires the old one, which readers may still have.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

#include "fabric/service.h"
#include "farside/result.h"
#include "index/continuity/layout.h"
#include "index/continuity/node_memory.h"
#include "index/continuity/request.h"
#include "index/continuity/slot.h"

namespace farside::index::continuity {

class NodeTable {
 public:
  // kCorrupt if there is no root.
  static Result<NodeTable> Open(fabric::NodeMemory& memory, uint64_t root);

  CheckedMemory& memory() { return memory_; }
  const Root& root() const { return root_; }
  uint64_t root_at() const { return root_at_; }
  // Whether the region has so large a table at this place.
  bool HasTable(uint64_t offset, uint32_t doublings) const;
  // Whether a block of exactly these bytes is there, of a key with this hash; only what its header says.
  bool IsBlock(Memory block, uint64_t hash);
  // Of one that is there: whether it has this key.
  bool HasKey(Memory block, std::string_view key);
  // Ends a handler: kCorrupt if something it met cannot be.
  Status Check() const;

  // The pair in which a key stands, as it is now.
  struct Pair {
    uint64_t at = 0;
    uint64_t number = 0;
    TableWord table;
    Indicator indicator;
    uint64_t group = 0;  // offset; 0: none

    uint64_t SlotAt(uint32_t slot) const {
      return slot < kFirstGroup ? at + SlotInPair(slot) : group + (slot - kFirstGroup) * kSlotBytes;
    }
    uint64_t indicator_at() const { return at + kIndicatorAt; }
  };
  Pair Load(TableWord table, uint64_t number);
  Pair PairOf(uint64_t hash);
  bool IsOdd(uint64_t hash) const { return HomeOf(hash, root_.shape.pairs()).odd; }

  struct Found {
    uint32_t slot = 0;
    Slot content;
  };
  std::optional<Found> Find(const Pair& pair, uint64_t hash, std::string_view key);
  // A slot in which a record of this kind of bucket may be put; in the group only if there is no other.
  std::optional<uint32_t> FreeSlot(const Pair& pair, bool odd) const;

  // ---- changes of a pair (continuity/1 to 3)
  // Sets one slot, or clears another, or both; `group`, if not 0, becomes the group of the pair.
  struct PairChange {
    std::optional<uint32_t> set;
    Slot content;
    std::optional<uint32_t> clear;
    uint64_t group = 0;
  };
  void Apply(Pair& pair, const PairChange& change);
  // Makes the sequence of a pair even, if a power cut, or a handler that gave up on a line, has left it odd.
  // Nothing if there is no such pair any more.
  void Settle(TableWord table, uint64_t number);
  // Whether one more pair of its table may have a group.
  bool MayHaveGroup(const Pair& pair);
  // Another pair of the table has a group.
  void CountGroup(TableWord table);

  // ---- growth (node_growth.cc)
  bool growing() const { return root_.growing(); }
  // Announces a table that is twice as large. False: the table grows already, or has grown.
  bool Begin(TableWord next);
  // Moves the records of a pair of the current table (continuity/4).
  void Move(const Pair& pair, Reply& reply);
  // Moves the next few pairs, if the table grows, and ends the growth with the last of them (continuity/5).
  void MoveSome(uint32_t pairs, Reply& reply);

 private:
  NodeTable(fabric::NodeMemory& memory, uint64_t root) : memory_(memory), root_at_(root) {}
  uint64_t PairsIn(TableWord table) const { return PairsOf(root_.shape, table.doublings()); }
  void StoreRoot(uint64_t offset, uint64_t word);
  void End(Reply& reply);

  CheckedMemory memory_;
  uint64_t root_at_;
  Root root_{};
  bool damaged_ = false;
};

}  // namespace farside::index::continuity
