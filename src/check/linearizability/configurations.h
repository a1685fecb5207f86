// The ways to explain the events so far; see key_check.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "check/linearizability/value_table.h"

namespace farside::check::linearizability {

// Bit i of an array of words.
inline bool TestBit(const uint64_t* bits, uint32_t i) { return (bits[i / 64] >> (i % 64)) & 1; }
inline void SetBit(uint64_t* bits, uint32_t i) { bits[i / 64] |= uint64_t{1} << (i % 64); }
inline void ClearBit(uint64_t* bits, uint32_t i) { bits[i / 64] &= ~(uint64_t{1} << (i % 64)); }

// A set of configurations of which none dominates another (rule 1).
//
// A configuration is a value and 2 * words() words: first the owed bits, then the spent bits.
class Configurations {
 public:
  void Reset(size_t words) {
    for (const Entry& entry : entries_) heads_[entry.value] = kNone;
    entries_.clear();
    bits_.clear();
    words_ = words;
  }

  // Entries are numbered 0 .. size()-1 in order of addition; some of them are no longer alive.
  size_t size() const { return entries_.size(); }
  size_t words() const { return words_; }
  bool IsAlive(size_t i) const { return entries_[i].alive; }
  ValueId value(size_t i) const { return entries_[i].value; }
  uint64_t* owed(size_t i) { return bits_.data() + i * 2 * words_; }
  uint64_t* spent(size_t i) { return owed(i) + words_; }

  // Adds a configuration unless it is dominated; drops those that it dominates. `bits` must not point into
  // this set. Returns the number of steps this took.
  uint64_t Add(ValueId value, const uint64_t* bits) {
    if (value >= heads_.size()) heads_.resize(std::max<size_t>(value + 1, heads_.size() * 2), kNone);
    uint64_t steps = 1;
    uint32_t* link = &heads_[value];
    while (*link != kNone) {
      ++steps;
      Entry& other = entries_[*link];
      const uint64_t* other_bits = bits_.data() + size_t{*link} * 2 * words_;
      if (IsSubset(other_bits, bits)) return steps;
      if (IsSubset(bits, other_bits)) {
        other.alive = false;
        *link = other.next;
      } else {
        link = &other.next;
      }
    }
    *link = static_cast<uint32_t>(entries_.size());
    entries_.push_back({.value = value, .next = kNone, .alive = true});
    bits_.insert(bits_.end(), bits, bits + 2 * words_);
    return steps;
  }

 private:
  struct Entry {
    ValueId value;
    uint32_t next;  // of the same value, among those alive
    bool alive;
  };

  bool IsSubset(const uint64_t* a, const uint64_t* b) const {
    for (size_t i = 0; i < 2 * words_; ++i) {
      if ((a[i] & ~b[i]) != 0) return false;
    }
    return true;
  }

  static constexpr uint32_t kNone = ~uint32_t{0};

  std::vector<Entry> entries_;
  std::vector<uint64_t> bits_;   // 2 * words_ for each entry
  std::vector<uint32_t> heads_;  // by value: the first entry alive
  size_t words_ = 1;
};

}  // namespace farside::check::linearizability
