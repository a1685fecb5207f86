// The bytes of the continuity table, on each of its nodes: a root, a table of pairs, and, while the table
// grows, a second one that is twice as large.
//
//   root     0         8      16      24      32                64
//            | current | next | moved | shape | zero            |
//
//   table    0        8         64         64 + 672     64 + 1344
//            | groups | zero    | pair 0   | pair 1   | ...
//
//   pair     0             128         160                    544            672
//            | even bucket | indicator | 12 shared slots      | odd bucket   |
//            '------- segment of even keys, 544 B ------------'
//                          '------- segment of odd keys, 544 B --------------'
//
//   indicator  0      8       16     32
//              | word | group | zero |
//
// A slot has 32 bytes (slot.h) and a bucket four slots. Every slot and every indicator lies inside one line,
// since the first pair begins on a line. A pair may have a group of twelve more slots in a block of its own.
//
// All of it is changed by handlers of the node alone (fabric/22), but for what is not linked yet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "fabric/address.h"
#include "pool/region/layout.h"

namespace farside::index::continuity {

inline constexpr uint32_t kLayoutVersion = 1;

inline constexpr uint64_t kSlotBytes = 32;
inline constexpr uint32_t kBucketSlots = 4;
inline constexpr uint32_t kSharedSlots = 12;
inline constexpr uint32_t kGroupSlots = 12;
// Numbers of slots, which are those of their bits in an indicator.
inline constexpr uint32_t kFirstShared = kBucketSlots;
inline constexpr uint32_t kFirstOdd = kFirstShared + kSharedSlots;
inline constexpr uint32_t kFirstGroup = kFirstOdd + kBucketSlots;
inline constexpr uint32_t kSlots = kFirstGroup + kGroupSlots;
static_assert(kFirstOdd == 16 && kFirstGroup == 20 && kSlots == 32);

// The word that says what of a pair counts.
//   63      62..32     31..0
//   moved   sequence   one bit for each slot that counts
// The sequence is odd while a handler changes the pair, or since a power cut stopped one. `moved`: the
// records of the pair stand in the next table; the bits mean nothing any more.
class Indicator {
 public:
  using Bits = Field<0, 32>;
  using Sequence = Field<32, 31>;
  using Moved = Field<63, 1>;
  static_assert(TilesWord<Bits, Sequence, Moved>());

  constexpr Indicator() = default;
  explicit constexpr Indicator(uint64_t word) : word_(word) {}

  constexpr uint64_t word() const { return word_; }
  constexpr uint32_t bits() const { return static_cast<uint32_t>(Bits::Get(word_)); }
  constexpr bool odd() const { return (Sequence::Get(word_) & 1) != 0; }
  constexpr bool moved() const { return Moved::Get(word_) != 0; }
  constexpr bool Has(uint32_t slot) const { return (word_ >> slot & 1) != 0; }

  constexpr Indicator WithBits(uint32_t bits) const { return Indicator(Bits::Set(word_, bits)); }
  // A handler begins to change the pair: an odd number that no indicator of the pair had before.
  constexpr Indicator Begun() const { return Raised(odd() ? 2 : 1); }
  // The next even number.
  constexpr Indicator Ended() const { return Raised(odd() ? 1 : 2); }
  constexpr Indicator MovedOn() const { return Indicator(Moved::Set(Ended().word_, 1)); }

  friend constexpr bool operator==(Indicator, Indicator) = default;

 private:
  constexpr Indicator Raised(uint64_t by) const {
    return Indicator(Sequence::Set(word_, (Sequence::Get(word_) + by) & Sequence::kMax));
  }

  uint64_t word_ = 0;
};
static_assert(sizeof(Indicator) == 8);

struct IndicatorBlock {
  Indicator word;
  uint64_t group;  // offset of the group's block; 0: none
  std::array<uint64_t, 2> zero;
};
static_assert(sizeof(IndicatorBlock) == kSlotBytes);
inline constexpr uint64_t kGroupOffset = offsetof(IndicatorBlock, group);

inline constexpr uint64_t kIndicatorAt = kBucketSlots * kSlotBytes;
inline constexpr uint64_t kSharedAt = kIndicatorAt + sizeof(IndicatorBlock);
inline constexpr uint64_t kOddAt = kSharedAt + kSharedSlots * kSlotBytes;
inline constexpr uint64_t kPairBytes = kOddAt + kBucketSlots * kSlotBytes;
inline constexpr uint64_t kSegmentBytes =
    kOddAt;  // that of odd keys is as large, and begins at the indicator
inline constexpr uint64_t kGroupBytes = kGroupSlots * kSlotBytes;
static_assert(kPairBytes == 672 && kSegmentBytes == 544 && kPairBytes - kIndicatorAt == kSegmentBytes);
static_assert(pool::kLine % kSlotBytes == 0 && kPairBytes % kSlotBytes == 0);

// Where a slot below kFirstGroup begins in its pair.
constexpr uint64_t SlotInPair(uint32_t slot) {
  if (slot < kFirstShared) return slot * kSlotBytes;
  if (slot < kFirstOdd) return kSharedAt + (slot - kFirstShared) * kSlotBytes;
  return kOddAt + (slot - kFirstOdd) * kSlotBytes;
}

// How a table was made; never changed.
//   63..44   43..39   38..35   34..32   31..0
//   every    group    shared   bucket   pairs
// The table begins with so many pairs. Of every bucket, shared region and group, so many slots are used:
// fewer than there are for tests alone. One pair in `every` may have a group; 0: none.
class Shape {
 public:
  using Pairs = Field<0, 32>;
  using Bucket = Field<32, 3>;
  using Shared = Field<35, 4>;
  using Group = Field<39, 5>;
  using Every = Field<44, 20>;
  static_assert(TilesWord<Pairs, Bucket, Shared, Group, Every>());

  constexpr Shape() = default;
  explicit constexpr Shape(uint64_t word) : word_(word) {}
  constexpr Shape(uint64_t pairs, uint32_t bucket, uint32_t shared, uint32_t group, uint32_t every)
      : word_(Pairs::Set(0, pairs) | Bucket::Set(0, bucket) | Shared::Set(0, shared) | Group::Set(0, group) |
              Every::Set(0, every)) {}

  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t pairs() const { return Pairs::Get(word_); }
  constexpr uint32_t every() const { return static_cast<uint32_t>(Every::Get(word_)); }
  constexpr bool is_sound() const {
    const auto in = [](uint64_t value, uint64_t most) { return value >= 1 && value <= most; };
    return pairs() >= 1 && in(Bucket::Get(word_), kBucketSlots) && in(Shared::Get(word_), kSharedSlots) &&
           in(Group::Get(word_), Shared::Get(word_));
  }
  // Slots in which keys of this kind of bucket may stand, those of the group included.
  constexpr uint32_t SlotsOf(bool odd) const {
    const uint32_t bucket = Ones(Bucket::Get(word_)) << (odd ? kFirstOdd : 0);
    return bucket | Ones(Shared::Get(word_)) << kFirstShared | Ones(Group::Get(word_)) << kFirstGroup;
  }
  // Slots of a pair without a group.
  constexpr uint64_t SlotsOfPair() const { return 2 * Bucket::Get(word_) + Shared::Get(word_); }

 private:
  static constexpr uint32_t Ones(uint64_t count) { return (uint32_t{1} << count) - 1; }

  uint64_t word_ = 0;
};
inline constexpr uint32_t kGroupBits = ~uint32_t{0} << kFirstGroup;

inline constexpr uint32_t kMostDoublings = 31;

// Which table: where it begins, and how often it has doubled. 0: none.
//   63..48   47..42      41..0
//   unused   doublings   offset in lines
class TableWord {
 public:
  using Offset = Field<0, 42>;
  using Doublings = Field<42, 6>;
  using Unused = Field<48, 16>;  // zero
  static_assert(TilesWord<Offset, Doublings, Unused>());

  constexpr TableWord() = default;
  explicit constexpr TableWord(uint64_t word) : word_(word) {}
  constexpr TableWord(uint64_t offset, uint32_t doublings)
      : word_(Offset::Set(0, offset / pool::kLine) | Doublings::Set(0, doublings)) {}

  constexpr uint64_t word() const { return word_; }
  constexpr bool none() const { return word_ == 0; }
  constexpr uint64_t offset() const { return Offset::Get(word_) * pool::kLine; }
  constexpr uint32_t doublings() const { return static_cast<uint32_t>(Doublings::Get(word_)); }
  constexpr bool is_sound() const {
    return Unused::Get(word_) == 0 && offset() != 0 && doublings() <= kMostDoublings;
  }

  friend constexpr bool operator==(TableWord, TableWord) = default;

 private:
  uint64_t word_ = 0;
};

struct Root {
  TableWord current;
  TableWord next;  // while the table grows; else none, or `current`
  uint64_t moved;  // while it grows: the pairs below this one are moved
  Shape shape;
  std::array<uint64_t, 4> zero;

  constexpr bool growing() const { return !next.none() && next != current; }
  // False: no handler has written that.
  constexpr bool is_sound() const;
};
static_assert(sizeof(Root) == pool::kLine);
inline constexpr uint64_t kCurrentOffset = offsetof(Root, current);
inline constexpr uint64_t kNextOffset = offsetof(Root, next);
inline constexpr uint64_t kMovedOffset = offsetof(Root, moved);
inline constexpr uint64_t kShapeOffset = offsetof(Root, shape);

// Word 0 of a table: how many of its pairs have a group, or one more for each power cut
// and each handler that gave up on a line (fabric/46).
inline constexpr uint64_t kTableHeadBytes = pool::kLine;

constexpr uint64_t PairsOf(Shape shape, uint32_t doublings) { return shape.pairs() << doublings; }
constexpr uint64_t TableBytes(uint64_t pairs) {
  return pool::RoundUp(kTableHeadBytes + pairs * kPairBytes, pool::kLine);
}
// A region has no more bytes than an offset in lines can say.
inline constexpr uint64_t kMostPairs = (TableWord::Offset::kMax + 1) * pool::kLine / kPairBytes;
constexpr uint64_t PairAt(uint64_t table, uint64_t pair) {
  return table + kTableHeadBytes + pair * kPairBytes;
}

constexpr bool Root::is_sound() const {
  if (!shape.is_sound() || !current.is_sound()) return false;
  const uint64_t pairs = PairsOf(shape, current.doublings());
  if (!growing()) return pairs <= kMostPairs;
  return next.is_sound() && next.doublings() == current.doublings() + 1 && 2 * pairs <= kMostPairs &&
         moved <= pairs;
}

// Where a key belongs. When a table doubles, the records of pair p go to the pairs p and p + pairs, and stay
// even or odd.
struct Home {
  uint64_t pair = 0;
  bool odd = false;
};
constexpr Home HomeOf(uint64_t hash, uint64_t pairs) {
  const uint64_t bucket = hash % (2 * pairs);
  return {.pair = bucket / 2, .odd = bucket % 2 != 0};
}

}  // namespace farside::index::continuity
