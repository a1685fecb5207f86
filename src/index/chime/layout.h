// The bytes of a chime table: a B+ tree whose leaves are small hopscotch tables. See docs/layouts/chime.md.
//
//   root block   one line, on the first memory node: the pointer to the root, and a counter of merges
//   inner node   a header line, then lines of pivots, in no order
//   leaf         a header line, then lines of 4 entries
//   block        keys=bytes: a key and its value, or a separator of more than 8 bytes (pool/memory/block.h)
//
// Numbers are little-endian. The root is changed by CAS only, and the counter by FAA. Lock words are taken by
// CAS, and released as kit/lock_release.h says. Everything else is changed by WRITEs. A READ of a line shows
// all that a WRITE has brought to the line, or nothing of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bits.h"
#include "base/bytes.h"
#include "fabric/address.h"
#include "pool/catalog/node_list.h"
#include "pool/region/layout.h"

namespace farside::index::chime {

inline constexpr uint32_t kLayoutVersion = 5;

inline constexpr size_t kMostSpan = 64;  // of a leaf: `leaving` has a bit for each entry
inline constexpr size_t kMostNeighbourhood = 16;
inline constexpr size_t kMostFanout = 64;
// More levels than 2^64 keys need with a fanout of 4. With a fanout of 2 or 3, which is for tests, ascending
// inserts leave nodes with one child behind: then the tree stops growing at this level, and the siblings of
// its root lead further.
inline constexpr size_t kMostLevels = 40;

// ---- words -------------------------------------------------------------------------------------------

// The address of a line: the memory node, counted in the order in which the table has them, and the line
// there. The low part of every pointer. Line 0 belongs to the pool, so a pointer of 0 points nowhere.
//   41..36   35..0
//   node     line
using LineBits = Field<0, 36>;  // 4 TiB a node
using NodeBits = Field<36, 6>;
inline constexpr size_t kMostNodes = NodeBits::kMax + 1;

// False if the table has no such memory node: the word is damaged, and its address is nowhere.
inline bool IsOnNodes(uint64_t word, const pool::NodeList& nodes) { return nodes.Has(NodeBits::Get(word)); }
inline fabric::FarAddr AddressOf(uint64_t word, const pool::NodeList& nodes) {
  return fabric::FarAddr(nodes.At(NodeBits::Get(word)), LineBits::Get(word) * pool::kLine);
}

// Points to a node of the tree: a child, a sibling, an heir, the root.
//   63..50   49..42   41..36   35..0
//   unused   level    node     line
class NodePtr {
 public:
  using Level = Field<42, 8>;  // 0: a leaf
  using Unused = Field<50, 14>;
  static_assert(TilesWord<LineBits, NodeBits, Level, Unused>());

  constexpr NodePtr() = default;
  explicit constexpr NodePtr(uint64_t word) : word_(word) {}
  static constexpr NodePtr To(size_t node, uint64_t offset, uint32_t level) {
    return NodePtr(LineBits::Set(0, offset / pool::kLine) | NodeBits::Set(0, node) | Level::Set(0, level));
  }

  constexpr uint64_t word() const { return word_; }
  constexpr bool null() const { return word_ == 0; }
  constexpr uint32_t level() const { return static_cast<uint32_t>(Level::Get(word_)); }
  constexpr bool is_leaf() const { return level() == 0; }
  constexpr size_t node() const { return NodeBits::Get(word_); }
  fabric::FarAddr at(const pool::NodeList& nodes) const { return AddressOf(word_, nodes); }

  friend constexpr bool operator==(NodePtr, NodePtr) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(NodePtr) == 8);

// The value of an entry with keys=bytes: names the block of the key.
//   63..48   47..42   41..36   35..0
//   tag      lines    node     line
class BlockRef {
 public:
  using Lines = Field<42, 6>;  // of the block; 0: more than fit here, its header says how many
  using Tag = Field<48, 16>;   // of the key's hash; the entry's home follows from it
  static_assert(TilesWord<LineBits, NodeBits, Lines, Tag>());

  constexpr BlockRef() = default;
  explicit constexpr BlockRef(uint64_t word) : word_(word) {}
  static constexpr BlockRef To(size_t node, uint64_t offset, uint64_t bytes, uint64_t tag) {
    const uint64_t lines = bytes / pool::kLine;
    return BlockRef(LineBits::Set(0, offset / pool::kLine) | NodeBits::Set(0, node) |
                    Lines::Set(0, lines <= Lines::kMax ? lines : 0) | Tag::Set(0, tag));
  }

  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t bytes() const { return Lines::Get(word_) * pool::kLine; }
  constexpr uint64_t tag() const { return Tag::Get(word_); }

 private:
  uint64_t word_ = 0;
};

// What a bound (a fence or a pivot) has besides its first 8 bytes.
//   63..53   52         51..48   47..42   41..36   35..0
//   unused   infinite   length   lines    node     line
class BoundRef {
 public:
  using Lines = Field<42, 6>;
  using Length = Field<48, 4>;  // of a bound of at most 8 bytes; kInBlock: the block has the bound
  using Infinite = Field<52, 1>;
  using Unused = Field<53, 11>;
  static_assert(TilesWord<LineBits, NodeBits, Lines, Length, Infinite, Unused>());
  static constexpr uint64_t kInBlock = 15;

  constexpr BoundRef() = default;
  explicit constexpr BoundRef(uint64_t word) : word_(word) {}
  static constexpr BoundRef Short(uint64_t length) { return BoundRef(Length::Set(0, length)); }
  static constexpr BoundRef Beyond() { return BoundRef(Infinite::Set(0, 1)); }
  static constexpr BoundRef InBlock(size_t node, uint64_t offset, uint64_t bytes) {
    return BoundRef(BlockRef::To(node, offset, bytes, 0).word() | Length::Set(0, kInBlock));
  }

  constexpr uint64_t word() const { return word_; }
  constexpr bool infinite() const { return Infinite::Get(word_) != 0; }
  constexpr uint64_t length() const { return Length::Get(word_); }
  constexpr bool in_block() const { return length() == kInBlock; }
  constexpr BlockRef block() const {
    return BlockRef(word_ & (LineBits::kMask | NodeBits::kMask | Lines::kMask));
  }

  friend constexpr bool operator==(BoundRef, BoundRef) = default;

 private:
  uint64_t word_ = 0;
};

// What a node is, written once.
//   63..40   39..32   31..0
//   unused   level    "chim"
class NodeInfo {
 public:
  using Magic = Field<0, 32>;
  using Level = Field<32, 8>;
  using Unused = Field<40, 24>;
  static_assert(TilesWord<Magic, Level, Unused>());
  static constexpr uint64_t kMagic = 0x6d696863;

  constexpr NodeInfo() = default;
  explicit constexpr NodeInfo(uint64_t word) : word_(word) {}
  static constexpr NodeInfo Of(uint32_t level) {
    return NodeInfo(Magic::Set(0, kMagic) | Level::Set(0, level));
  }
  constexpr uint64_t word() const { return word_; }
  constexpr uint32_t level() const { return static_cast<uint32_t>(Level::Get(word_)); }
  friend constexpr bool operator==(NodeInfo, NodeInfo) = default;

 private:
  uint64_t word_ = 0;
};

// The lock of a node, and in a leaf a count of its splits and merges (chime/14).
//   63..54   53..32   31..0
//   unused   count    owner; 0: the lock is free
class NodeLock {
 public:
  using OwnerBits = Field<0, 32>;
  using Count = Field<32, 22>;
  using Unused = Field<54, 10>;
  static_assert(TilesWord<OwnerBits, Count, Unused>());
  static constexpr uint32_t kMostCount = Count::kMax;  // and from then on: such a count says nothing

  constexpr NodeLock() = default;
  explicit constexpr NodeLock(uint64_t word) : word_(word) {}
  constexpr NodeLock HeldBy(pool::Owner owner) const { return NodeLock(OwnerBits::Set(word_, owner.bits())); }
  constexpr NodeLock Freed() const { return NodeLock(OwnerBits::Set(word_, 0)); }
  constexpr NodeLock Raised() const {
    return count() < kMostCount ? NodeLock(Count::Set(word_, count() + 1)) : *this;
  }

  constexpr uint64_t word() const { return word_; }
  constexpr bool free() const { return OwnerBits::Get(word_) == 0; }
  constexpr pool::Owner owner() const {
    return pool::Owner::FromBits(static_cast<uint32_t>(OwnerBits::Get(word_)));
  }
  constexpr uint32_t count() const { return static_cast<uint32_t>(Count::Get(word_)); }
  friend constexpr bool operator==(NodeLock, NodeLock) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(NodeLock) == 8);

// ---- nodes -------------------------------------------------------------------------------------------

// The first line of every node. Only the lock's holder WRITEs it, all but the lock at once.
struct Header {
  uint64_t lock;          // NodeLock
  uint64_t info;          // NodeInfo
  uint64_t moves;         // of a leaf: raised before and after entries change their place; odd in between.
                          // Of an inner node: raised when an inner node below it dies (chime/12)
  uint64_t fence_prefix;  // the node has keys below this bound: its first 8 bytes,
  uint64_t fence_ref;     // and the rest, a BoundRef
  uint64_t sibling;       // NodePtr: the node with the keys from the fence on; 0 if there is none
  uint64_t heir;          // NodePtr: of a dead node, the node that gets its range; 0: the node is not dead
  uint64_t leaving;       // of a leaf: a bit for each entry that the sibling has, and that is to be cleared
};
static_assert(sizeof(Header) == pool::kLine);
inline Header HeaderOf(std::span<const std::byte> node) {
  Header header;
  std::memcpy(&header, node.data(), sizeof(header));
  return header;
}
inline std::span<std::byte> BytesOf(Header& header) { return std::as_writable_bytes(std::span(&header, 1)); }
inline constexpr uint64_t kLockOffset = 0;
// Where a WRITE of the header begins: behind the lock, which is released by a verb of its own.
inline constexpr uint64_t kUnlockedOffset = offsetof(Header, info);
inline std::span<const std::byte> BytesBehindLock(const Header& header) {
  return std::as_bytes(std::span(&header, 1)).subspan(kUnlockedOffset);
}

// With keys=inline, either all keys of a leaf are below the middle or none is (chime/11). So they share their
// top bit, and in an entry this bit says instead that the entry is used.
inline constexpr uint64_t kMiddle = uint64_t{1} << 63;
enum class Half : uint64_t { kLower = 0, kUpper = kMiddle };  // the top bit of its keys
constexpr Half HalfOf(uint64_t key) { return Half{key & kMiddle}; }
// The half of a leaf follows from its fence.
constexpr Half HalfOf(const Header& header) {
  const bool is_lower = !BoundRef(header.fence_ref).infinite() && header.fence_prefix <= kMiddle;
  return is_lower ? Half::kLower : Half::kUpper;
}

// An entry of a leaf, decoded. `key` is a big-endian number: the key, or its first 8 bytes, a shorter key
// padded with zeros.
struct Entry {
  bool used = false;
  uint64_t key = 0;
  uint64_t value = 0;  // of an unused entry: anything
  friend bool operator==(const Entry&, const Entry&) = default;
};

// A line holds a whole number of entries, so no entry lies in two lines.
inline constexpr size_t kEntryBytes = 16;
inline constexpr size_t kEntriesPerLine = pool::kLine / kEntryBytes;
static_assert(kEntriesPerLine * kEntryBytes == pool::kLine);
// Where the entry of a slot begins, counted from the beginning of its leaf; the header comes first.
constexpr uint64_t SlotOffset(size_t slot) { return pool::kLine + slot * kEntryBytes; }

// The lines that so many slots take.
constexpr size_t LinesOf(size_t slots, size_t per_line) { return (slots + per_line - 1) / per_line; }
inline constexpr size_t kMostLeafLines = LinesOf(kMostSpan, kEntriesPerLine);

// keys=inline
//   offset   0                        8       16
//            63: used, 62..0: key     value
struct InlineEntries {
  static Entry Load(const std::byte* from, Half half) {
    const uint64_t word = LoadU64(from);
    return {.used = (word & kMiddle) != 0,
            .key = (word & ~kMiddle) | static_cast<uint64_t>(half),
            .value = LoadU64(from + 8)};
  }
  static void Store(std::byte* to, const Entry& entry) {
    StoreU64(to, entry.used ? entry.key | kMiddle : 0);
    StoreU64(to + 8, entry.used ? entry.value : 0);
  }
};
// keys=bytes. A BlockRef is never 0.
//   offset   0        8          16
//            prefix   BlockRef
struct BlockEntries {
  static Entry Load(const std::byte* from) {
    const uint64_t ref = LoadU64(from + 8);
    return {.used = ref != 0, .key = LoadU64(from), .value = ref};
  }
  static void Store(std::byte* to, const Entry& entry) {
    StoreU64(to, entry.key);
    StoreU64(to + 8, entry.used ? entry.value : 0);
  }
};

// A pivot of an inner node: {prefix, child} with keys=inline, 4 to a line; {prefix, ref, child} with
// keys=bytes, 2 to a line. A child of 0 marks a free slot. A pivot counts if it is below the node's fence.
struct RawPivot {
  uint64_t prefix = 0;
  BoundRef ref;
  NodePtr child;
};
inline constexpr size_t kMostInnerLines = LinesOf(kMostFanout, 2);
inline constexpr size_t kMostPivotBytes = 24;

// The sizes that follow from the table's options.
struct Shape {
  size_t span = 64;          // entries of a leaf
  size_t neighbourhood = 8;  // entries among which a key is searched for
  size_t fanout = 64;        // pivots of an inner node
  bool inline_keys = false;  // keys=inline

  constexpr size_t leaf_lines() const { return LinesOf(span, kEntriesPerLine); }
  constexpr uint64_t leaf_bytes() const { return (1 + leaf_lines()) * pool::kLine; }
  constexpr size_t pivots_per_line() const { return inline_keys ? 4 : 2; }
  constexpr uint64_t pivot_bytes() const { return inline_keys ? 16 : 24; }
  constexpr size_t inner_lines() const { return LinesOf(fanout, pivots_per_line()); }
  constexpr uint64_t inner_bytes() const { return (1 + inner_lines()) * pool::kLine; }
  // A neighbourhood that reaches the end of the leaf wraps around to its beginning.
  constexpr size_t SlotAt(size_t home, size_t i) const {
    return home + i < span ? home + i : home + i - span;
  }
  // What a search READs: from the home on, and what wraps around.
  constexpr uint64_t tail_bytes(size_t home) const {
    return (home + neighbourhood < span ? neighbourhood : span - home) * kEntryBytes;
  }
  constexpr uint64_t wrapped_bytes(size_t home) const {
    return home + neighbourhood < span ? 0 : (home + neighbourhood - span) * kEntryBytes;
  }
  constexpr uint64_t PivotOffset(size_t slot) const {
    return (1 + slot / pivots_per_line()) * pool::kLine + slot % pivots_per_line() * pivot_bytes();
  }
  constexpr size_t HomeOf(uint64_t tag) const { return tag * span >> 16; }
};

// `half`: of the leaf; with keys=bytes it does not matter.
inline Entry LoadEntry(const Shape& shape, Half half, const std::byte* from) {
  return shape.inline_keys ? InlineEntries::Load(from, half) : BlockEntries::Load(from);
}
inline void StoreEntry(const Shape& shape, std::byte* to, const Entry& entry) {
  if (shape.inline_keys) {
    InlineEntries::Store(to, entry);
  } else {
    BlockEntries::Store(to, entry);
  }
}

inline RawPivot LoadPivot(const Shape& shape, const std::byte* from) {
  if (shape.inline_keys)
    return {.prefix = LoadU64(from), .ref = BoundRef::Short(8), .child = NodePtr(LoadU64(from + 8))};
  return {.prefix = LoadU64(from), .ref = BoundRef(LoadU64(from + 8)), .child = NodePtr(LoadU64(from + 16))};
}
inline void StorePivot(const Shape& shape, std::byte* to, const RawPivot& pivot) {
  StoreU64(to, pivot.prefix);
  if (!shape.inline_keys) StoreU64(to + 8, pivot.ref.word());
  StoreU64(to + shape.pivot_bytes() - 8, pivot.child.word());
}

// The line at which every client begins.
struct RootBlock {
  uint64_t root;    // NodePtr; never a leaf
  uint64_t merges;  // raised by FAA after a node was unlinked, and before it is retired (chime/8)
  std::array<uint64_t, 6> zero;
};
inline constexpr uint64_t kMergesOffset = offsetof(RootBlock, merges);
static_assert(sizeof(RootBlock) == pool::kLine);

}  // namespace farside::index::chime
