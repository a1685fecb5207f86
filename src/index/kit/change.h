// What an operation makes of the value it found: a plain function, no far memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "fabric/address.h"
#include "farside/result.h"

namespace farside::index {

enum class ChangeKind : uint8_t {
  kPut,
  kInsert,
  kUpdate,
  kDelete,
  kCompareAndSet,
  kIncrement,
  // An update to the same value, if it still stands in a certain block: the record moves to another block
  // (evac/1).
  kTouch,
};

struct Change {
  Change(ChangeKind change_kind, std::string_view change_key, std::string_view new_value = {})
      : kind(change_kind), key(change_key), value(new_value) {}
  ChangeKind kind;
  std::string_view key;
  std::string_view value;
  std::string_view expected;  // CompareAndSet
  uint64_t delta = 0;         // Increment
  fabric::FarAddr victim;     // Touch: the block. `value` was read there a while ago: only its size counts
};

struct Decision {
  bool applied = false;  // false: leave everything as it is
  bool removes = false;  // if applied: the key is deleted; otherwise it gets Value()
  uint64_t counter = 0;  // Increment: the new value as a number
  std::array<std::byte, 8> counter_bytes{};
  std::string_view moved;  // Touch: the value that was found

  // The new value, of an operation that stores one. A view of this decision, of the change, or (of a touch)
  // of what was found.
  std::string_view Value(const Change& change) const {
    if (change.kind == ChangeKind::kTouch) return moved;
    return change.kind == ChangeKind::kIncrement ? AsText(counter_bytes) : change.value;
  }
};

// What came of a change.
struct Changed {
  bool was_present = false;
  bool applied = false;
  uint64_t counter = 0;  // Increment: the new value
  bool told = true;      // false: `was_present` is not known; of puts only
};

// `found` is the value that the key has, if it is present, and `block` where it stands. An engine that does
// not say where refuses every touch: its records are not evacuated.
Result<Decision> Decide(const Change& change, const std::optional<std::string_view>& found,
                        fabric::FarAddr block = {});

}  // namespace farside::index
