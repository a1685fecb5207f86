// The bytes of a shard table (after "SHARD", PVLDB 19(4), 2025). See docs/layouts/shard.md.
//
// On each node of the table:
//
//   root      (index/kit/growth_layout.h)
//   segment s | units | locks |
//   unit      | level 1: a bucket of 1, 2, 4 or 8 lines | level 2: a line |
//
// A table that was resized r times has 2^(bits + r) units. Unit u is a bucket of level 1 and a line of level
// 2, both with the number u, one behind the other: so that one READ brings all that a split divides, and one
// WRITE makes a new one. Segment 0 holds the first 2^bits units, segment s the next 2^(bits + s - 1): the
// table doubles, nothing ever moves to another address, and a client knows the place of every bucket from a
// few offsets.
//
//   line      | entry 0 | entry 1 | ...                          | entry 7 |
//
// Entries fill the lines entirely. What a line has to say about itself stands in the flags of its eight
// entries:
//
//   slot   0 .. 5                          6                              7
//   flag   version of the bucket, bit by   level 1, line 0: overflow      level 2: the entry is a link
//          bit, least significant first    (its keys may be in level 2)   to a node of level 3
//
// A node of level 3 is one line: seven entries, and a link to the next node in slot 7. Its flags are not used
// but for the link.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/bits.h"
#include "base/random.h"
#include "fabric/address.h"
#include "index/kit/growth_layout.h"
#include "pool/region/layout.h"

namespace farside::index::shard {

inline constexpr uint32_t kLayoutVersion = 3;

inline constexpr size_t kSlotsPerLine = 8;
inline constexpr size_t kLinkSlot = 7;
inline constexpr size_t kNodeEntries = 7;
inline constexpr size_t kOverflowSlot = 6;
inline constexpr size_t kVersionSlots = 6;
inline constexpr size_t kMostLines = 8;  // of a bucket of level 1
inline constexpr uint32_t kMostInitialBits = 20;
inline constexpr uint32_t kMostUnitBits = 32;  // as a UnitLock has them
// The tags of a bucket are refreshed by every eighth resize.
inline constexpr uint32_t kResizesPerWindow = 8;
static_assert(kMostVersion < (uint32_t{1} << kVersionSlots));
static_assert(kMostInitialBits + kMostVersion <= 64, "every resize decides by a bit of the hash");

// Where a block is.
//   63     62..46   45..42                                     41..0
//   flag   tag      size in lines, 0 = more than fit           offset in lines
// All zero but the flag: empty. Offset 0 with a size: a hole, whose entry was deleted.
class Entry {
 public:
  using Offset = Field<0, 42>;
  using Lines = Field<42, 4>;
  using Tag = Field<46, 17>;
  using Flag = Field<63, 1>;  // not the entry's: see the flags of a line
  static_assert(TilesWord<Offset, Lines, Tag, Flag>());

  constexpr Entry() = default;  // empty
  explicit constexpr Entry(uint64_t word) : word_(word) {}
  static constexpr Entry Of(uint64_t offset, uint64_t bytes, uint64_t tag) {
    const uint64_t lines = bytes / pool::kLine;
    return Entry(Offset::Set(0, offset / pool::kLine) | Lines::Set(0, lines <= Lines::kMax ? lines : 0) |
                 Tag::Set(0, tag));
  }
  static constexpr Entry Hole() { return Entry(Lines::Set(0, 1)); }
  static constexpr Entry Link(uint64_t offset) {
    return Entry(Offset::Set(0, offset / pool::kLine) | Flag::kMask);
  }

  constexpr uint64_t word() const { return word_; }
  constexpr bool flag() const { return (word_ & Flag::kMask) != 0; }
  constexpr bool empty() const { return (word_ & ~Flag::kMask) == 0; }
  constexpr bool has_block() const { return Offset::Get(word_) != 0; }
  constexpr bool is_hole() const { return !empty() && !has_block(); }
  constexpr uint64_t offset() const { return Offset::Get(word_) * pool::kLine; }
  constexpr uint64_t bytes() const { return Lines::Get(word_) * pool::kLine; }  // 0: see the block
  constexpr uint64_t tag() const { return Tag::Get(word_); }

  constexpr Entry WithTag(uint64_t tag) const { return Entry(Tag::Set(word_, tag)); }
  constexpr Entry WithFlag(bool flag) const { return Entry(Flag::Set(word_, flag ? 1 : 0)); }
  // INVARIANT shard/2: a change of an entry keeps its flag.
  constexpr Entry WithFlagOf(Entry other) const { return WithFlag(other.flag()); }

  friend constexpr bool operator==(Entry, Entry) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(Entry) == 8);

struct Line {
  std::array<Entry, kSlotsPerLine> entries;

  uint32_t version() const {
    uint32_t version = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < kVersionSlots; ++i) version |= uint32_t{entries[i].flag()} << i;
    return version;
  }
  void set_version(uint32_t version) {
    for (size_t i = 0; i < kVersionSlots; ++i) entries[i] = entries[i].WithFlag((version >> i) & 1);
  }
  bool overflow() const { return entries[kOverflowSlot].flag(); }
  // Of a line of level 2, or a node of level 3: the entry in slot 7 is a link.
  bool has_link() const { return entries[kLinkSlot].flag(); }
};
static_assert(sizeof(Line) == pool::kLine);

// The one version that all lines show; nothing if the READ, or a client that died, came between them.
inline std::optional<uint32_t> VersionOf(std::span<const Line> lines) {
  // Which bits some lines show and others do not, two entries at a time.
  using Two [[gnu::vector_size(2 * sizeof(Entry))]] = uint64_t;
  constexpr size_t kTwos = kVersionSlots / 2;
  static_assert(kVersionSlots % 2 == 0);
  std::array<Two, kTwos> first;
  std::memcpy(first.data(), lines[0].entries.data(), sizeof(first));
  Two differing{};
  for (const Line& line : lines.subspan(1)) {
#pragma GCC unroll 3
    for (size_t i = 0; i < kTwos; ++i) {
      Two bits;
      std::memcpy(&bits, &line.entries[2 * i], sizeof(Two));
      differing |= bits ^ first[i];
    }
  }
  if (((differing[0] | differing[1]) & Entry::Flag::kMask) != 0) return std::nullopt;
  return lines[0].version();
}

// Lock of some units. Taken by CAS, and released as kit/lock_release.h says; 0 is free.
//   63..32                                              31..0
//   unit (low bits), which its owner may be splitting   owner
class UnitLock {
 public:
  using OwnerBits = Field<0, 32>;
  using Unit = Field<32, 32>;
  static_assert(TilesWord<OwnerBits, Unit>());

  explicit constexpr UnitLock(uint64_t word) : word_(word) {}
  constexpr UnitLock(pool::Owner owner, uint64_t unit)
      : word_(OwnerBits::Set(0, owner.bits()) | Unit::Set(0, unit & Unit::kMax)) {}
  constexpr uint64_t word() const { return word_; }
  constexpr pool::Owner owner() const {
    return pool::Owner::FromBits(static_cast<uint32_t>(OwnerBits::Get(word_)));
  }
  constexpr uint64_t unit() const { return Unit::Get(word_); }

 private:
  uint64_t word_ = 0;
};
static_assert(UnitLock::Unit::kMax == (uint64_t{1} << kMostUnitBits) - 1);

// The options that change bytes.
struct Shape {
  uint32_t initial_bits = 0;    // the table starts with 2^initial_bits units
  uint32_t slots = 64;          // used in a bucket of level 1
  uint32_t overflow_slots = 8;  // used in a line of level 2

  constexpr size_t lines() const {
    return std::bit_ceil((size_t{slots} + kSlotsPerLine - 1) / kSlotsPerLine);
  }
  constexpr uint64_t bucket_bytes() const { return lines() * pool::kLine; }
  constexpr uint64_t unit_bytes() const { return bucket_bytes() + pool::kLine; }
  constexpr uint64_t units(uint32_t version) const { return uint64_t{1} << (initial_bits + version - 1); }
  // Units have numbers that fit into a lock.
  constexpr uint32_t most_version() const { return std::min(kMostVersion, kMostUnitBits - initial_bits); }
  // Entries that levels 1 and 2 have room for.
  constexpr uint64_t capacity(uint32_t version) const { return units(version) * (slots + overflow_slots); }

  // Which segment a unit stands in, and how many segments a version has.
  constexpr size_t SegmentOf(uint64_t unit) const {
    return std::max<int>(std::bit_width(unit) - static_cast<int>(initial_bits), 0);
  }
  constexpr size_t segments(uint32_t version) const { return version; }
  constexpr uint64_t FirstUnit(size_t segment) const {
    return segment == 0 ? 0 : uint64_t{1} << (initial_bits + segment - 1);
  }
  constexpr uint64_t SegmentUnits(size_t segment) const {
    return segment == 0 ? uint64_t{1} << initial_bits : FirstUnit(segment);
  }
  // Far fewer than units, once there are many; more than clients that hold one at a time.
  constexpr uint64_t SegmentLocks(size_t segment) const {
    return std::min<uint64_t>(SegmentUnits(segment), 4096);
  }
  constexpr uint64_t SegmentBytes(size_t segment) const {
    return SegmentUnits(segment) * unit_bytes() + pool::RoundUp(SegmentLocks(segment) * 8, pool::kLine);
  }

  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

// The three numbers that decide where a key may stand: the first in level 1, the others in level 2.
enum class Candidate : uint8_t { kLevel1 = 0, kFirstChoice = 1, kSecondChoice = 2 };
class KeyHash {
 public:
  explicit constexpr KeyHash(uint64_t hash) : hash_(hash) {}

  constexpr uint64_t hash() const { return hash_; }
  constexpr uint64_t number(Candidate candidate) const {
    switch (candidate) {
      case Candidate::kLevel1: break;
      case Candidate::kFirstChoice: return Mixed(hash_ ^ 0xa0761d6478bd642f);
      case Candidate::kSecondChoice: return Mixed(hash_ ^ 0xe7037ed1a0b428db);
    }
    return hash_;
  }

 private:
  static constexpr uint64_t Mixed(uint64_t state) { return SplitMix64(state); }
  uint64_t hash_;
};

// The unit of a number in a table of this version.
constexpr uint64_t UnitOf(const Shape& shape, uint64_t number, uint32_t version) {
  return number & (shape.units(version) - 1);
}
// The 17 bits of a number that entries of a bucket of this version carry. The next resize decides by one of
// the first eight of them. The bits that earlier resizes decided by are the same for all entries of the
// bucket, the others tell keys apart.
constexpr uint64_t TagOf(const Shape& shape, uint64_t number, uint32_t version) {
  const uint32_t start = shape.initial_bits + (version - 1) / kResizesPerWindow * kResizesPerWindow;
  return start >= 64 ? 0 : (number >> start) & Entry::Tag::kMax;
}
// Whether the split of a bucket of this version moves the entry to the new unit.
constexpr bool Moves(Entry entry, uint32_t version) {
  return ((entry.tag() >> ((version - 1) % kResizesPerWindow)) & 1) != 0;
}
// Whether the tags change with the split of a bucket of this version.
constexpr bool EndsWindow(uint32_t version) { return version % kResizesPerWindow == 0; }

}  // namespace farside::index::shard
