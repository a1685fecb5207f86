// A cuckoo table in local memory: numbers of slots and nothing else. It counts what an engine of this kind
// would find, and not what that costs.
//
// Keys have two choices, drawn at random. A key that finds both full looks for the shortest chain of
// migrations breadth first, as the nessie table does. A key that finds none is left out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"

namespace farside::tools::paper {

class CuckooModel {
 public:
  using Choices = std::array<uint32_t, 2>;  // buckets, which differ

  // Each choice of a key is one of `slots / per_choice` buckets.
  CuckooModel(uint64_t slots, uint32_t per_choice, uint64_t seed);

  double load() const { return static_cast<double>(records_) / static_cast<double>(slots_.size()); }
  uint64_t slots() const { return slots_.size(); }

  Choices DrawKey();
  bool IsFull(uint32_t bucket) const { return !EmptySlotOf(bucket).has_value(); }

  // How many migrations make room for the key, which then is there; absent if none do, of as many as `chain`
  // in a row, found by looking at 2 * chain buckets behind the two of the key at most.
  std::optional<uint64_t> Put(const Choices& key, uint64_t chain);
  // One record, drawn at random. There must be one.
  void DeleteAny();

  // Of the records, the share whose other choice is full.
  double ShareOfFullAlternatives() const;

 private:
  // A slot on a way, whose record might move.
  struct Visit {
    uint32_t slot;
    uint32_t from;  // the visit whose record would come here; kNone for those of the key itself
    uint32_t length;
  };
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr Choices kEmpty = {kNone, kNone};

  std::optional<uint32_t> EmptySlotOf(uint32_t bucket) const;
  uint32_t AlternativeOf(uint32_t slot) const {
    const uint32_t bucket = slot / per_choice_;
    return slots_[slot][0] == bucket ? slots_[slot][1] : slots_[slot][0];
  }
  void Enter(uint32_t bucket, uint32_t from, uint32_t length);
  // Every record on the way moves on by one slot, and the key takes the first one.
  void MoveAlong(uint32_t last_visit, uint32_t empty_slot, const Choices& key);

  const uint32_t per_choice_;
  const uint32_t buckets_;
  Random random_;
  uint64_t records_ = 0;
  std::vector<Choices> slots_;
  // ---- of one put
  std::vector<Visit> visits_;
  std::vector<uint32_t> entered_;
};

}  // namespace farside::tools::paper
