// The bytes of a nessie table (after "Designing A Low-Latency Cuckoo Hash Table for Write-Intensive Workloads
// Using RDMA", WRSC 2014). See docs/layouts/nessie.md.
//
// On each node of the table:
//
//   root      | state | records | zero .. |  directory: 40 offsets of segments  |   index/kit/growth_layout.h
//             | moves | swept | zero .. | owners of 16 spare lines | move log: 256 entries | 16 spare lines |
//   segment s | slots, one word each |
//   item      | owner | moves | replaced | seal |  a block: pool/memory/block.h |
//
// A table that has grown r times has 2^(bits + r) slots. Segment 0 holds the first 2^bits, segment s the next
// 2^(bits + s - 1): the table doubles, and no slot ever moves to another address. A slot of segment 0 is in
// use from the beginning. Every other slot is all zero at first, which says "unsplit": its keys stand in the
// slot whose number lacks the highest bit, its parent.
//
// A key has two candidate slots, the primary and the secondary one, by two numbers that follow from its hash.
// They differ in the lowest `bits` bits, so they are two different slots however far the table has grown.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "base/random.h"
#include "index/kit/growth_layout.h"
#include "pool/memory/block.h"
#include "pool/region/layout.h"

namespace farside::index::nessie {

inline constexpr uint32_t kLayoutVersion = 1;
inline constexpr uint32_t kLeastInitialBits = 2;
inline constexpr uint32_t kMostInitialBits = 30;
inline constexpr uint32_t kMostSlotBits = 39;

enum class Kind : uint8_t {
  kUnsplit = 0,    // the slot's keys stand in its parent
  kEmpty = 1,      // no item; a token that occurs only once
  kPending = 2,    // an item whose writer has not committed it: what it replaces still counts
  kLive = 3,       // an item
  kClaim = 4,      // a copy that a migration has not committed: it does not count
  kSplitting = 5,  // as unsplit, and a client is about to put the slot to use; a token that occurs only once
};

// A slot. Changed by CAS only.
//   63..61   60..46   45..42                             41..0
//   kind     tag      size in lines, 0 = more than fit   offset in lines      pending, live, claim
//   kind     60..29: owner                               28..0: count         empty, splitting
class Word {
 public:
  using Offset = Field<0, 42>;
  using Lines = Field<42, 4>;
  using Tag = Field<46, 15>;
  using KindBits = Field<61, 3>;
  static_assert(TilesWord<Offset, Lines, Tag, KindBits>());
  using Count = Field<0, 29>;
  using OwnerBits = Field<29, 32>;
  static_assert(TilesWord<Count, OwnerBits, KindBits>());

  constexpr Word() = default;  // unsplit
  explicit constexpr Word(uint64_t word) : word_(word) {}
  // `offset` and `bytes` as allocated.
  static constexpr Word Of(Kind kind, uint64_t tag, uint64_t offset, uint64_t bytes) {
    const uint64_t lines = bytes / pool::kLine;
    return Word(Offset::Set(0, offset / pool::kLine) | Lines::Set(0, lines <= Lines::kMax ? lines : 0) |
                Tag::Set(0, tag) | KindBits::Set(0, static_cast<uint64_t>(kind)));
  }
  // The client's count makes it one that no slot has had before; it comes round after 2^29 tokens.
  static constexpr Word Token(Kind kind, pool::Owner owner, uint64_t count) {
    return Word(Count::Set(0, count & Count::kMax) | OwnerBits::Set(0, owner.bits()) |
                KindBits::Set(0, static_cast<uint64_t>(kind)));
  }
  // The empty word of a new table. Its owner is 0, which no client has.
  static constexpr Word FirstEmpty() { return Token(Kind::kEmpty, pool::Owner(), 0); }

  constexpr uint64_t word() const { return word_; }
  constexpr Kind kind() const { return static_cast<Kind>(KindBits::Get(word_)); }
  constexpr bool is(Kind kind) const { return this->kind() == kind; }
  // Whether the slot is in use, and not its parent.
  constexpr bool is_effective() const { return !is(Kind::kUnsplit) && !is(Kind::kSplitting); }
  constexpr bool has_item() const { return is(Kind::kPending) || is(Kind::kLive) || is(Kind::kClaim); }
  constexpr bool is_damaged() const { return kind() > Kind::kSplitting; }

  constexpr uint64_t offset() const { return Offset::Get(word_) * pool::kLine; }
  constexpr uint64_t bytes() const { return Lines::Get(word_) * pool::kLine; }  // 0: see the item
  constexpr uint64_t tag() const { return Tag::Get(word_); }
  // The same item.
  constexpr Word As(Kind kind) const { return Word(KindBits::Set(word_, static_cast<uint64_t>(kind))); }

  friend constexpr bool operator==(Word, Word) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(Word) == 8);

// What an item says of itself, in front of its block. Never changed once the item is reachable.
struct ItemHeader {
  uint32_t owner;     // the client that wrote it: pool::Owner
  uint32_t moves;     // how often the value was copied since it was put; of two copies, the larger is newer
  uint64_t replaced;  // the live word that it stands in for (of a copy: its source), else "no value"
  uint64_t seal;      // of the other three and of the block's checksum
};
static_assert(sizeof(ItemHeader) == 24);

// Bytes of an item, whole lines. A key and a value of 8 bytes each take exactly one.
constexpr uint64_t ItemBytes(uint64_t key_bytes, uint64_t value_bytes) {
  return pool::RoundUp(sizeof(ItemHeader) + sizeof(pool::BlockHeader) + key_bytes + value_bytes, pool::kLine);
}
static_assert(ItemBytes(8, 8) == pool::kLine);
// A tombstone is one line. It has no key if the key is longer than this: then the item that it replaces
// tells.
inline constexpr size_t kMostKeyOfTombstone = 16;
static_assert(ItemBytes(kMostKeyOfTombstone, 0) == pool::kLine);

// A key that was moved to a slot with a lower number; cursors read what they may have missed (move_log.h).
struct LogEntry {
  uint64_t number;  // of the move, from 1: `moves` as its FAA left it; 0: none yet
  uint64_t hash;    // of the key
};
static_assert(sizeof(LogEntry) == 16, "an entry is read and written whole");
inline constexpr uint64_t kLogEntries = 256;

// Room for tombstones when the pool has none (spare_lines.h).
inline constexpr size_t kSpareLines = 16;

// The root: the kit's part, which every client reads, and nessie's own behind it.
struct TableRoot {
  Root growing;
  uint64_t moves;  // FAA only: numbers that were given to moves of keys to lower slots, also to failed ones
  uint64_t swept;  // CAS only: slots behind the first segment that clients have taken to split (sweeper.h)
  std::array<uint64_t, 6> zero;
  std::array<uint64_t, kSpareLines> spares;  // owners of the spare lines: pool::Owner, 0 = free. CAS only
  std::array<LogEntry, kLogEntries> log;     // number n is in entry (n - 1) % kLogEntries
  std::array<std::array<std::byte, pool::kLine>, kSpareLines> lines;
};
static_assert(sizeof(TableRoot) == 5696 && offsetof(TableRoot, lines) % pool::kLine == 0);
inline constexpr uint64_t kMovesOffset = offsetof(TableRoot, moves);
inline constexpr uint64_t kSweptOffset = offsetof(TableRoot, swept);
inline constexpr uint64_t kSparesOffset = offsetof(TableRoot, spares);
inline constexpr uint64_t kLogOffset = offsetof(TableRoot, log);
inline constexpr uint64_t kLinesOffset = offsetof(TableRoot, lines);

// How large a table is.
struct Shape {
  uint32_t initial_bits = 6;  // the table starts with 2^initial_bits slots

  constexpr uint64_t slots(uint32_t version) const { return uint64_t{1} << (initial_bits + version - 1); }
  constexpr uint32_t most_version() const { return std::min(kMostVersion, kMostSlotBits + 1 - initial_bits); }

  constexpr size_t SegmentOf(uint64_t slot) const {
    return std::max<int>(std::bit_width(slot) - static_cast<int>(initial_bits), 0);
  }
  constexpr uint64_t FirstSlot(size_t segment) const {
    return segment == 0 ? 0 : uint64_t{1} << (initial_bits + segment - 1);
  }
  constexpr uint64_t SegmentSlots(size_t segment) const {
    return segment == 0 ? slots(1) : FirstSlot(segment);
  }
  constexpr uint64_t SegmentBytes(size_t segment) const {
    return pool::RoundUp(SegmentSlots(segment) * sizeof(Word), pool::kLine);
  }
  // A slot that is not in segment 0 has one.
  constexpr bool HasParent(uint64_t slot) const { return slot >= slots(1); }
  static constexpr uint64_t ParentOf(uint64_t slot) { return slot ^ std::bit_floor(slot); }

  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

// A change works on at most so many slots of each candidate: the one in use, and those that it may be split
// into. One resize announces fewer versions than that, because their slots cannot be split yet.
inline constexpr uint32_t kMostTrailOfChange = 6;

enum class Candidate : uint8_t { kPrimary = 0, kSecondary = 1 };
inline constexpr size_t kCandidates = 2;
constexpr Candidate Other(Candidate candidate) {
  return candidate == Candidate::kPrimary ? Candidate::kSecondary : Candidate::kPrimary;
}

// Where a key may stand.
class KeyHash {
 public:
  explicit constexpr KeyHash(uint64_t hash) : hash_(hash) {}

  constexpr uint64_t hash() const { return hash_; }
  constexpr uint64_t tag() const { return Mixed(hash_ ^ 0x8ebc6af09c88c6e3) & Word::Tag::kMax; }
  // The candidate's slot in a table of this version.
  constexpr uint64_t SlotOf(const Shape& shape, Candidate candidate, uint32_t version) const {
    const uint64_t primary = Mixed(hash_ ^ 0xa0761d6478bd642f);
    uint64_t number = primary;
    if (candidate == Candidate::kSecondary) {
      number = Mixed(hash_ ^ 0xe7037ed1a0b428db);
      if (((number ^ primary) & (shape.slots(1) - 1)) == 0) number ^= 1;
    }
    return number & (shape.slots(version) - 1);
  }

 private:
  static constexpr uint64_t Mixed(uint64_t state) { return SplitMix64(state); }
  uint64_t hash_;
};

}  // namespace farside::index::nessie
