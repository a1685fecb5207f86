// The operations that a connection performs together, and the records that all systems hold alike.
//
// Keys have 8 bytes, all of them letters, digits, '-' and '_': the text protocol of memcached takes nothing
// else, and every system gets the same keys. Values prove themselves (workload/records.h): a reader can tell
// that a value was written for this key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/random.h"

namespace farside::peers {

enum class Operation { kGet, kSet };

constexpr std::string_view Name(Operation operation) { return operation == Operation::kGet ? "GET" : "SET"; }

inline constexpr size_t kKeyBytes = 8;
// Eight characters of 64 different ones.
inline constexpr uint64_t kMostRecords = uint64_t{1} << 48;

// Writes the key of a record, kKeyBytes of them. No two records below kMostRecords have the same.
void FillKey(uint64_t record, char* key);

class Batch {
 public:
  Batch(size_t size, size_t value_size);

  // ---- what is asked; neither allocates

  // Keys of any records, and values for them if the operation takes some.
  void Draw(Operation operation, Random& random, uint64_t records);
  // The records from `first` on, with values. There are fewer of them if `records` comes first.
  void Take(uint64_t first, uint64_t records);

  // ---- what a connection needs

  size_t size() const { return size_; }
  size_t value_size() const { return value_size_; }
  std::string_view key(size_t i) const { return {keys_.data() + i * kKeyBytes, kKeyBytes}; }
  std::string_view value(size_t i) const { return {values_.data() + i * value_size_, value_size_}; }
  // Whether this value was written for key `i`.
  bool IsRight(size_t i, std::string_view value) const;

 private:
  void SetRecord(size_t i, uint64_t record);
  void SetValue(size_t i, uint32_t version);

  const size_t capacity_;
  const size_t value_size_;
  size_t size_;
  std::string keys_;
  std::string values_;
};

}  // namespace farside::peers
