// A slot: a record, if it is small, or where its block is.
//
//   byte      0       1                                     31
//   small   | kind  | key | value | zero            | value bytes |     key and value take up to 30 bytes
//   full    | kind  | key | value                               |     exactly 31
//   block   | kind  | zero | offset: 8 | bytes: 8 | hash: 8       |     pool/memory/block.h, on this node
//             kind: 2 bits; the length of the key in the five highest
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "index/continuity/layout.h"

namespace farside::index::continuity {

struct Slot {
  std::array<uint64_t, kSlotBytes / 8> words{};

  friend bool operator==(const Slot&, const Slot&) = default;
};
static_assert(sizeof(Slot) == kSlotBytes);

inline constexpr size_t kMostInSlot = kSlotBytes - 1;

constexpr bool FitsSlot(size_t key_bytes, size_t value_bytes) {
  return key_bytes <= kMostInSlot && value_bytes <= kMostInSlot && key_bytes + value_bytes <= kMostInSlot;
}

// A record that fits.
Slot RecordSlot(std::string_view key, std::string_view value);
Slot BlockSlot(uint64_t offset, uint64_t bytes, uint64_t hash);

// What a slot says; views of it.
struct SlotView {
  bool in_block = false;
  // A small record.
  std::string_view key;
  std::string_view value;
  // A block.
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t hash = 0;
};
// Nothing: no handler has written that.
std::optional<SlotView> DecodeSlot(const Slot& slot);

}  // namespace farside::index::continuity
