// The records of a workload: numbered from 0, each with a key that looks random and values that prove
// themselves.
//
//   key     8 bytes mixed from the number, so that no two are equal, and more of the same as asked for
//   value   | version | bytes that only this key and this version have |
//
// A reader of a value can tell that it was written for this key, without knowing which version is the last.
// The version takes 4 bytes, or half of the value if that is less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace farside::workload {

inline constexpr size_t kFewestKeyBytes = 8;

// Writes the key of a record into `key`, which has the size that all keys have: kFewestKeyBytes or more.
void FillKey(uint64_t record, std::span<char> key);

// Writes a value of this key into `value`, which has the size that all values have.
void FillValue(std::string_view key, uint32_t version, std::span<char> value);

// Whether FillValue made this of the key, with whatever version.
bool IsValueOf(std::string_view key, std::string_view value, size_t value_size);

}  // namespace farside::workload
