// Buckets as they were read: plain bytes and what can be told from them, no far memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "fabric/address.h"
#include "index/shard/layout.h"

namespace farside::index::shard {

// An entry where it stood.
struct Slot {
  Place place = Place::kLevel1;
  uint64_t unit = 0;
  uint32_t version = 0;  // of its bucket
  fabric::FarAddr at;
  Entry entry;
};

// Memory for lines that are about to be READ: unlike an array of them it is not cleared before, which takes as long as to
// look for a key in it.
struct UnreadLines {
  static_assert(std::is_trivially_copyable_v<Line>);
  alignas(Line) std::array<std::byte, kMostLines * sizeof(Line)> bytes;

  std::span<const Line> First(size_t count) const {
    return {reinterpret_cast<const Line*>(bytes.data()), count};
  }
};

// A bucket of level 1.
struct Bucket {
  static_assert(sizeof(std::array<Line, kMostLines>) == kMostLines * kSlotsPerLine * sizeof(Entry));
  std::array<Line, kMostLines> lines;  // the first shape.lines() of them
  uint64_t unit = 0;
  uint32_t version = 0;

  bool overflow() const { return lines[0].overflow(); }
  Entry entry(size_t slot) const { return entries()[slot]; }
  // Those of all lines, one behind the other, as they stand in memory.
  const Entry* entries() const { return reinterpret_cast<const Entry*>(lines.data()); }
};

// A node of level 3.
struct Node {
  fabric::FarAddr at;
  Line line;
};

// A line of level 2, with the nodes behind it.
struct Overflow {
  Line line;
  uint64_t unit = 0;
  uint32_t version = 0;
  std::vector<Node> nodes;  // nearly always none

  // How many slots of the line hold entries, or may: slot 7 is a link if there are nodes.
  size_t slots(const Shape& shape) const {
    return line.has_link() ? std::min<size_t>(shape.overflow_slots, kLinkSlot) : shape.overflow_slots;
  }
};

// Whether some entry of a line may carry the tag: two entries at a time, of which only the upper halves are compared.
inline bool MayHaveTag(const Entry* line, uint64_t tag_bits) {
  using Four [[gnu::vector_size(2 * sizeof(Entry))]] = uint32_t;
  using Two [[gnu::vector_size(2 * sizeof(Entry))]] = uint64_t;
  static_assert((Entry::Tag::kMask & 0xffffffff) == 0, "the tag is in the upper half");
  const auto upper = static_cast<uint32_t>(Entry::Tag::kMask >> 32);
  const auto tag = static_cast<uint32_t>(tag_bits >> 32);
  // What is in the lower halves, masked, is 0, and is compared with 1.
  const Four mask{0, upper, 0, upper};
  const Four wanted{1, tag, 1, tag};
  Four equal{};
#pragma GCC unroll 4
  for (size_t slot = 0; slot < kSlotsPerLine; slot += 2) {
    Four entries;
    std::memcpy(&entries, line + slot, sizeof(entries));
    equal |= reinterpret_cast<Four>((entries & mask) == wanted);
  }
  const Two any = reinterpret_cast<Two>(equal);
  return (any[0] | any[1]) != 0;
}

// The first slot from `from` on whose entry may be the key's; nothing if there is none.
inline std::optional<size_t> FindTag(const Entry* entries, const Shape& shape, uint64_t tag, size_t from) {
  const uint64_t tag_bits = Entry::Tag::Set(0, tag);
  for (size_t slot = from; slot < shape.slots;) {
    const size_t line_end = std::min<size_t>(slot - slot % kSlotsPerLine + kSlotsPerLine, shape.slots);
    if (MayHaveTag(entries + (slot - slot % kSlotsPerLine), tag_bits)) {
      for (; slot < line_end; ++slot) {
        if (entries[slot].HasTagBits(tag_bits) && entries[slot].has_block()) return slot;
      }
    }
    slot = line_end;
  }
  return std::nullopt;
}
inline std::optional<size_t> FindTag(const Bucket& bucket, const Shape& shape, uint64_t tag, size_t from) {
  return FindTag(bucket.entries(), shape, tag, from);
}

// The first slot that was never used since the bucket was written; those behind it were not used either (shard/1).
inline std::optional<size_t> FindUnused(const Bucket& bucket, const Shape& shape) {
  // From the end: the unused ones are the last.
  size_t unused = shape.slots;
  while (unused > 0 && bucket.entry(unused - 1).empty()) --unused;
  if (unused == shape.slots) return std::nullopt;
  return unused;
}

inline std::optional<size_t> FindHole(const Bucket& bucket, const Shape& shape) {
  for (size_t slot = 0; slot < shape.slots; ++slot) {
    if (bucket.entry(slot).is_hole()) return slot;
  }
  return std::nullopt;
}

// The first empty slot of a line of level 2.
inline std::optional<size_t> FindEmpty(const Overflow& overflow, const Shape& shape) {
  for (size_t slot = 0; slot < overflow.slots(shape); ++slot) {
    if (overflow.line.entries[slot].empty()) return slot;
  }
  return std::nullopt;
}
inline size_t CountEmpty(const Overflow& overflow, const Shape& shape) {
  size_t empty = 0;
  for (size_t slot = 0; slot < overflow.slots(shape); ++slot)
    empty += overflow.line.entries[slot].empty() ? 1 : 0;
  return empty;
}

}  // namespace farside::index::shard
