// What an operation makes of the value it found: a plain function, no far memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "farside/result.h"

namespace farside::index::reference {

enum class ChangeKind : uint8_t { kPut, kInsert, kUpdate, kDelete, kCompareAndSet, kIncrement };

struct Change {
  Change(ChangeKind change_kind, std::string_view change_key) : kind(change_kind), key(change_key) {}
  ChangeKind kind;
  std::string_view key;
  std::string_view value;
  std::string_view expected;  // CompareAndSet
  uint64_t delta = 0;         // Increment
};

struct Decision {
  bool applied = false;              // false: leave everything as it is
  std::optional<std::string> value;  // the new value; none: the key is deleted
  uint64_t counter = 0;              // Increment: the new value as a number
};

// `found` is the value that the key has, if it is present.
Result<Decision> Decide(const Change& change, const std::optional<std::string_view>& found);

}  // namespace farside::index::reference
