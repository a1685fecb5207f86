// A continuity table in local memory: which slots are taken, by which hashes, and nothing else. It places
// records by the rules of the node's handlers (index/continuity), growth included, so that for the same keys
// it is full when the table is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "index/continuity/layout.h"

namespace farside::tools::paper {

// A table at the moment at which a key found no place.
struct FullTable {
  uint64_t records = 0;
  uint64_t pairs = 0;
  uint64_t groups = 0;

  friend bool operator==(const FullTable&, const FullTable&) = default;

  // Records for each slot; the slots of groups are counted, or not.
  double load() const {
    return static_cast<double>(records) / static_cast<double>(SlotsOfPairs() + SlotsOfGroups());
  }
  double load_of_pairs() const { return static_cast<double>(records) / static_cast<double>(SlotsOfPairs()); }

 private:
  uint64_t SlotsOfPairs() const { return pairs * index::continuity::kFirstGroup; }
  uint64_t SlotsOfGroups() const { return groups * index::continuity::kGroupSlots; }
};

class ContinuityModel {
 public:
  // One pair in `every` may have a group; 0: none. With `grows`, it doubles when a key finds no place.
  ContinuityModel(uint64_t pairs, uint32_t every, bool grows);

  // False: there is no place, and it does not grow. The key must not be there.
  bool Insert(uint64_t hash);

  // As it is now.
  FullTable now() const {
    return {.records = records_, .pairs = current_.pairs.size(), .groups = current_.groups};
  }
  // As it was whenever it began to grow.
  const std::vector<FullTable>& growths() const { return growths_; }

 private:
  using Hashes = std::array<uint64_t, index::continuity::kSlots>;
  struct Pair {
    uint32_t bits = 0;
    bool group = false;
    bool moved = false;
  };
  struct Table {
    std::vector<Pair> pairs;
    std::vector<Hashes> hashes;  // of a table that grows: those of the records
    uint64_t groups = 0;
  };

  Table Empty(uint64_t pairs) const;
  bool growing() const { return !next_.pairs.empty(); }
  bool MayHaveGroup(const Table& table, const Pair& pair) const;
  std::optional<uint32_t> FreeSlot(const Pair& pair, bool odd) const;
  void Put(Table& table, uint64_t number, uint32_t slot, uint64_t hash) const;
  // Whether there was room in the pair, or in a group that it may have.
  bool Place(Table& table, uint64_t hash, bool may_add);
  bool PlaceAnywhere(uint64_t hash);
  void Move(uint64_t number);
  void MoveSome(uint32_t pairs);

  const uint32_t every_;
  const bool grows_;
  const index::continuity::Shape shape_;
  Table current_;
  Table next_;  // no pairs: it does not grow now
  uint64_t moved_ = 0;
  uint64_t records_ = 0;
  std::vector<FullTable> growths_;
};

}  // namespace farside::tools::paper
