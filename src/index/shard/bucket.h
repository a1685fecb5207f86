// Buckets as they were read: plain bytes and what can be told from them, no far memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "fabric/address.h"
#include "index/shard/layout.h"

namespace farside::index::shard {

inline std::span<std::byte> BytesOf(std::span<Line> lines) { return std::as_writable_bytes(lines); }
inline std::span<std::byte> BytesOf(Line& line) { return BytesOf(std::span(&line, 1)); }

// An entry where it stood.
struct Slot {
  Candidate candidate = Candidate::kLevel1;
  uint64_t unit = 0;
  uint32_t version = 0;  // of its bucket
  fabric::FarAddr at;
  Entry entry;
};

// Memory for lines that are about to be READ: unlike an array of them it is not cleared before, which takes
// as long as to look for a key in it.
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

// Compares four entries with the tag: the bits of the equal ones, in their lanes.
using FourSlots [[gnu::vector_size(16)]] = uint32_t;
inline FourSlots FourWithTag(const Entry* entries, uint32_t tag, FourSlots bits) {
  static_assert((Entry::Tag::kMask & 0xffffffff) == 0, "the tag is in the upper half");
  static_assert(std::endian::native == std::endian::little);
  FourSlots two;
  FourSlots next_two;
  std::memcpy(&two, entries, sizeof(two));
  std::memcpy(&next_two, entries + 2, sizeof(next_two));
  const FourSlots upper = __builtin_shuffle(two, next_two, FourSlots{1, 3, 5, 7});
  return reinterpret_cast<FourSlots>((upper & static_cast<uint32_t>(Entry::Tag::kMask >> 32)) == tag) & bits;
}

// A bit for each slot of the lines whose entry carries the tag, the lowest for the first. Without a branch
// that depends on what is found: where a key stands in its bucket cannot be predicted.
template <size_t kLines>
uint32_t SlotsWithTag(const Entry* entries, uint32_t tag) {
  static_assert(kLines * kSlotsPerLine <= 32, "each has a bit in a lane");
  FourSlots found{};
#pragma GCC unroll 8
  for (uint32_t slot = 0; slot < kLines * kSlotsPerLine; slot += 4)
    found |= FourWithTag(entries + slot, tag, FourSlots{1u << slot, 2u << slot, 4u << slot, 8u << slot});
  return found[0] | found[1] | found[2] | found[3];
}
inline uint64_t SlotsWithTag(const Entry* entries, size_t lines, uint64_t tag_bits) {
  const auto tag = static_cast<uint32_t>(tag_bits >> 32);
  switch (lines) {  // a power of two (Shape::lines)
    case 1: return SlotsWithTag<1>(entries, tag);
    case 2: return SlotsWithTag<2>(entries, tag);
    case 4: return SlotsWithTag<4>(entries, tag);
    default:
      return SlotsWithTag<4>(entries, tag) | uint64_t{SlotsWithTag<4>(entries + 4 * kSlotsPerLine, tag)}
                                                 << (4 * kSlotsPerLine);
  }
}

// The same for the slots that the shape uses, by the tag itself.
inline uint64_t SlotsWithTag(const Entry* entries, const Shape& shape, uint64_t tag) {
  return SlotsWithTag(entries, shape.lines(), Entry::Tag::Set(0, tag)) & ~uint64_t{0} >> (64 - shape.slots);
}

// The first slot from `from` on whose entry may be the key's; nothing if there is none.
inline std::optional<size_t> FindTag(const Entry* entries, const Shape& shape, uint64_t tag, size_t from) {
  if (from >= shape.slots) return std::nullopt;
  uint64_t slots = SlotsWithTag(entries, shape, tag) & ~uint64_t{0} << from;
  for (; slots != 0; slots &= slots - 1) {
    const auto slot = static_cast<size_t>(std::countr_zero(slots));
    if (entries[slot].has_block()) return slot;
  }
  return std::nullopt;
}
inline std::optional<size_t> FindTag(const Bucket& bucket, const Shape& shape, uint64_t tag, size_t from) {
  return FindTag(bucket.entries(), shape, tag, from);
}

// The first slot that was never used since the bucket was written; those behind it were not used either
// (shard/1).
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
