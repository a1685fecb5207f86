// Values as small numbers, so that comparing them is cheap.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "check/specification.h"

namespace farside::check::linearizability {

using ValueId = uint32_t;
inline constexpr ValueId kAbsentId = 0;
inline constexpr ValueId kAnonymousId = 1;  // any value that is never looked at again: rule 5 of key_check.h

// Numbers the values that a key may take.
class ValueTable {
 public:
  // `expected` only sizes the table.
  void Clear(size_t expected) {
    values_.assign(2, Value{});
    buckets_.assign(std::bit_ceil(2 * expected + 4), kNone);
  }

  ValueId Intern(const Value& value) {
    uint32_t* bucket = Find(value);
    if (*bucket != kNone) return *bucket;
    const auto id = static_cast<ValueId>(values_.size());
    *bucket = id;
    values_.push_back(value);
    if (values_.size() * 2 > buckets_.size()) Grow();
    return id;
  }

  const Value& operator[](ValueId id) const { return values_[id]; }
  size_t size() const { return values_.size(); }

 private:
  uint32_t* Find(const Value& value) {
    const size_t mask = buckets_.size() - 1;
    size_t at = Hash(value) & mask;
    while (buckets_[at] != kNone && !(values_[buckets_[at]] == value)) at = (at + 1) & mask;
    return &buckets_[at];
  }

  static size_t Hash(const Value& value) {
    if (!value.is_number) return std::hash<std::string_view>()(value.bytes);
    const uint64_t mixed = value.number * 0x9E3779B97F4A7C15u;
    return mixed ^ (mixed >> 32);
  }

  void Grow() {
    buckets_.assign(buckets_.size() * 2, kNone);
    for (ValueId id = kAnonymousId + 1; id < values_.size(); ++id) *Find(values_[id]) = id;
  }

  static constexpr uint32_t kNone = ~uint32_t{0};

  std::vector<Value> values_;      // by id
  std::vector<uint32_t> buckets_;  // open addressing; ids
};

}  // namespace farside::check::linearizability
