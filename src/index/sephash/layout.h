// The bytes of a sephash table (after "SepHash", PVLDB 17(5), 2024). See docs/layouts/sephash.md.
//
// On each node of the table:
//
//   root          | spares | zero .. | directory: 40 offsets of parts |
//   part k        | offsets of CurSegments, one for each suffix of the hash that the part has |
//   CurSegment    | meta | suffix | entries: appended one after the other |
//   MainSegment   | header | filter, 5 lines | where each fingerprint begins | numbers of pages |
//   page          | words of a MainSegment: entries, sorted, and then what was dropped |
//
// A segment is a CurSegment and the MainSegment that its meta word names; it holds the keys whose hash ends
// with its suffix. Part 0 of the directory has the segments that the table began with, 2^bits of them; part k
// has those with suffixes of bits + k bits that begin with a one: a segment that a split makes stands in the
// directory at its suffix, for ever, and an empty entry says that no split has made it yet.
//
// A round is what happens between two merges of a segment. The epoch counts them, modulo 8: entries that have
// the epoch of the meta word belong to the round, entries that have the one before it are free slots.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bits.h"
#include "fabric/address.h"
#include "pool/region/layout.h"

namespace farside::index::sephash {

inline constexpr uint32_t kLayoutVersion = 1;

inline constexpr uint32_t kMostDepth = 40;  // bits of the hash that choose a segment
inline constexpr size_t kMostParts = 40;    // of a directory
inline constexpr uint32_t kMostInitialBits = 16;
inline constexpr uint32_t kMostDepthBits = 4;
inline constexpr size_t kFingerprints = 256;

constexpr uint64_t LowBits(uint32_t count) { return (uint64_t{1} << count) - 1; }

// ---- rounds ------------------------------------------------------------------------------------------

inline constexpr uint32_t kEpochs = 8;
constexpr uint32_t EpochAfter(uint32_t epoch) { return (epoch + 1) % kEpochs; }
constexpr uint32_t EpochBefore(uint32_t epoch) { return (epoch + kEpochs - 1) % kEpochs; }

// ---- entries -----------------------------------------------------------------------------------------

// What an entry says about its key, 22 bits: see TagOf.
//   21..14   13..9   8        7..0
//   fp       fp2     parity   depth bits
using Tag = uint32_t;
inline constexpr uint32_t kFp2Bits = 5;
inline constexpr uint32_t kFingerprintBits = 8 + kFp2Bits;  // fp and fp2
inline constexpr uint32_t kParityShift = 8;
inline constexpr uint32_t kFingerprintShift = kParityShift + 1;
constexpr uint8_t FpOf(Tag tag) { return static_cast<uint8_t>(tag >> (kFingerprintShift + kFp2Bits)); }

// Where a block is.
//   63..61   60..39   38..36   35..0
//   epoch    tag      size     offset in lines
// In a CurSegment, changed by CAS only. In a MainSegment, the epoch is 0: sorted words are sorted by tag.
class Entry {
 public:
  using Offset = Field<0, 36>;
  using Size = Field<36, 3>;  // 1 to 5: lines of the block; and see below
  using TagBits = Field<39, 22>;
  using Epoch = Field<61, 3>;
  static_assert(TilesWord<Offset, Size, TagBits, Epoch>());

  static constexpr uint64_t kLarger = 0;  // the block has more lines than stand here
  static constexpr uint64_t kMostLines = 5;
  static constexpr uint64_t kTombstone = 6;  // the key is deleted; the block is the one that it had
  static constexpr uint64_t kPadding = 7;    // no key: fills a slot. The offset is the count of merges

  constexpr Entry() = default;  // a slot that was never used
  explicit constexpr Entry(uint64_t word) : word_(word) {}
  static constexpr Entry OfBlock(uint32_t epoch, Tag tag, uint64_t offset, uint64_t bytes) {
    const uint64_t lines = bytes / pool::kLine;
    return Make(epoch, tag, lines <= kMostLines ? lines : kLarger, offset / pool::kLine);
  }
  static constexpr Entry Tombstone(uint32_t epoch, Tag tag, uint64_t offset) {
    return Make(epoch, tag, kTombstone, offset / pool::kLine);
  }
  // INVARIANT sephash/4: no two rounds have the same padding.
  static constexpr Entry Padding(uint32_t epoch, uint64_t merges) {
    return Make(epoch, 0, kPadding, merges & Offset::kMax);
  }

  constexpr uint64_t word() const { return word_; }
  constexpr uint32_t epoch() const { return static_cast<uint32_t>(Epoch::Get(word_)); }
  constexpr Tag tag() const { return static_cast<Tag>(TagBits::Get(word_)); }
  constexpr uint8_t fp() const { return FpOf(tag()); }
  constexpr uint64_t offset() const { return Offset::Get(word_) * pool::kLine; }
  constexpr bool is_tombstone() const { return Size::Get(word_) == kTombstone; }
  constexpr bool is_padding() const { return Size::Get(word_) == kPadding; }
  // Of the block. 0: it has to be read from there.
  constexpr uint64_t bytes() const {
    const uint64_t lines = Size::Get(word_);
    return lines <= kMostLines ? lines * pool::kLine : 0;
  }

  constexpr Entry WithEpoch(uint32_t epoch) const { return Entry(Epoch::Set(word_, epoch)); }
  constexpr Entry WithTag(Tag tag) const { return Entry(TagBits::Set(word_, tag)); }

  friend constexpr auto operator<=>(Entry, Entry) = default;

 private:
  static constexpr Entry Make(uint32_t epoch, Tag tag, uint64_t size, uint64_t offset) {
    return Entry(Offset::Set(0, offset) | Size::Set(0, size) | TagBits::Set(0, tag) | Epoch::Set(0, epoch));
  }
  uint64_t word_ = 0;
};
static_assert(sizeof(Entry) == 8);

// ---- CurSegments -------------------------------------------------------------------------------------

// The first word of a CurSegment. Changed by CAS only.
//   63..61   60..55   54..38                   37..0
//   epoch    depth    pages of the MainSegment  offset of the MainSegment in lines
class MetaWord {
 public:
  using MainOffset = Field<0, 38>;
  using MainPages = Field<38, 17>;
  using Depth = Field<55, 6>;
  using Epoch = Field<61, 3>;
  static_assert(TilesWord<MainOffset, MainPages, Depth, Epoch>());

  constexpr MetaWord() = default;
  explicit constexpr MetaWord(uint64_t word) : word_(word) {}
  constexpr MetaWord(uint32_t epoch, uint32_t depth, uint64_t main, uint64_t pages)
      : word_(MainOffset::Set(0, main / pool::kLine) | MainPages::Set(0, pages) | Depth::Set(0, depth) |
              Epoch::Set(0, epoch)) {}

  constexpr uint64_t word() const { return word_; }
  constexpr uint32_t epoch() const { return static_cast<uint32_t>(Epoch::Get(word_)); }
  constexpr uint32_t depth() const { return static_cast<uint32_t>(Depth::Get(word_)); }
  constexpr uint64_t main() const { return MainOffset::Get(word_) * pool::kLine; }
  constexpr uint64_t pages() const { return MainPages::Get(word_); }

  friend constexpr bool operator==(MetaWord, MetaWord) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(MetaWord) == 8);

// 32 bits that differ if two meta words do, nearly always.
constexpr uint32_t FoldOf(MetaWord meta) { return static_cast<uint32_t>(meta.word() ^ meta.word() >> 32); }

// A CurSegment is a power of two of bytes, and so lies within a page: one READ of it is sampled within the
// window that the fabric bounds (fabric/21).
struct SegmentHeader {
  MetaWord meta;
  uint64_t suffix;  // of the hashes of its keys; `depth` bits of it count. Never changes

  // Whether keys of this hash belong to the segment.
  constexpr bool Covers(uint64_t hash) const { return ((hash ^ suffix) & LowBits(meta.depth())) == 0; }
};
static_assert(sizeof(SegmentHeader) == 16);
inline constexpr size_t kMostEntries = (fabric::kWindowBytes - sizeof(SegmentHeader)) / sizeof(Entry);
static_assert(kMostEntries == 126);

struct SegmentImage {
  SegmentHeader header;
  std::array<Entry, kMostEntries> entries;
};
static_assert(sizeof(SegmentImage) == fabric::kWindowBytes);
static_assert(offsetof(SegmentImage, entries) == 16);

constexpr uint64_t SegmentBytes(uint64_t entries) {
  return std::max<uint64_t>(std::bit_ceil(sizeof(SegmentHeader) + entries * sizeof(Entry)), pool::kLine);
}
constexpr fabric::FarAddr EntryAt(fabric::FarAddr segment, uint64_t slot) {
  return segment + offsetof(SegmentImage, entries) + slot * sizeof(Entry);
}
inline constexpr uint32_t kFirstEpoch = 1;  // of a new CurSegment, whose slots are all zero
constexpr SegmentImage NewSegment(MetaWord meta, uint64_t suffix) {
  return {.header = {.meta = meta, .suffix = suffix}, .entries = {}};
}

// ---- MainSegments ------------------------------------------------------------------------------------

// A MainSegment is a head and pages. The head has what a client must know to read a few entries; the pages
// have the entries, in order, and behind the last entry what the merge has dropped. Pages of one size, so
// that the memory of any MainSegment serves for any other, whatever their sizes are. Nothing of it changes
// while it can be reached, but for the bytes of the filter, which become 1.
struct MainHeader {
  uint64_t merges;          // of this segment, this one included: with the address, the name of a MainSegment
  uint64_t head_checksum;   // of the head, but for the filter and this word
  uint64_t words_checksum;  // of the entries and of what was dropped
  uint64_t segment;         // offset of its CurSegment
  uint64_t sibling;         // offset of the CurSegment that the same commit has made; 0: it was no split
  uint32_t entries;
  uint32_t dropped;
  uint32_t pages;
  // Of a segment that a split has made, until it is merged after the one that it was split from: the slots of
  // that CurSegment may name blocks of this MainSegment while its meta word is the one that the split wrote.
  uint32_t parent_meta;  // FoldOf that word
  uint64_t parent;       // offset of that CurSegment; 0: no other segment's slots name blocks of this one
};
static_assert(sizeof(MainHeader) == pool::kLine);

// One byte for each fingerprint: 1 if an entry of the round that follows this merge may have it. Each line
// begins with the count of merges, so that one READ tells whose filter it is.
struct FilterLine {
  static constexpr size_t kBytes = 56;
  uint64_t merges;
  std::array<uint8_t, kBytes> bytes;
};
static_assert(sizeof(FilterLine) == pool::kLine);
inline constexpr size_t kFilterLines = (kFingerprints + FilterLine::kBytes - 1) / FilterLine::kBytes;
inline constexpr uint64_t kFilterOffset = sizeof(MainHeader);
constexpr uint64_t FilterLineOffset(uint8_t fp) {
  return kFilterOffset + fp / FilterLine::kBytes * sizeof(FilterLine);
}
constexpr uint64_t FilterByteOffset(uint8_t fp) {
  return FilterLineOffset(fp) + offsetof(FilterLine, bytes) + fp % FilterLine::kBytes;
}

// Behind the filter: for each fingerprint, the first entry that has it or a larger one; two bytes each, or
// four if the pages have room for more entries than two bytes can count. And then the numbers of the pages:
// their offsets, in pages.
inline constexpr uint64_t kStartsOffset = kFilterOffset + kFilterLines * sizeof(FilterLine);
static_assert(kStartsOffset == 384);

// Memory of the table that no entry names: a block that a merge has dropped and that slots of the CurSegment
// still name, for example, until the client that commits the next merge retires it (sephash/3).
//   63..38            37..0
//   size in lines     offset in lines
class DroppedBlock {
 public:
  using Offset = Field<0, 38>;
  using Lines = Field<38, 26>;
  static_assert(TilesWord<Offset, Lines>());

  constexpr DroppedBlock() = default;
  explicit constexpr DroppedBlock(uint64_t word) : word_(word) {}
  constexpr DroppedBlock(uint64_t offset, uint64_t bytes)
      : word_(Offset::Set(0, offset / pool::kLine) | Lines::Set(0, bytes / pool::kLine)) {}
  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t offset() const { return Offset::Get(word_) * pool::kLine; }
  constexpr uint64_t bytes() const { return Lines::Get(word_) * pool::kLine; }

  friend constexpr bool operator==(DroppedBlock, DroppedBlock) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(DroppedBlock) == 8);

// ---- the root and the directory ----------------------------------------------------------------------

// A MainSegment of kUsualPages pages that no segment has any more: memory for a merge by a client that
// deletes in a full pool. Changed by CAS only; 0: there is none.
//   63..38                                          37..0
//   stamp: an epoch that was read after it was      offset in lines
//   unlinked; 0: no segment ever had it;
//   all ones: a client has taken it
class SpareWord {
 public:
  using Offset = Field<0, 38>;
  using Stamp = Field<38, 26>;
  static_assert(TilesWord<Offset, Stamp>());

  // A stamp counts modulo 2^26; so many epochs at most pass while a client that is alive does not move on.
  static constexpr uint64_t kFarthestAhead = Stamp::kMax / 4;
  static constexpr uint64_t kTaken = Stamp::kMax;

  constexpr SpareWord() = default;
  explicit constexpr SpareWord(uint64_t word) : word_(word) {}
  static constexpr SpareWord New(uint64_t offset) { return SpareWord(Offset::Set(0, offset / pool::kLine)); }
  static constexpr SpareWord Unlinked(uint64_t offset, uint64_t epoch) {
    return SpareWord(Stamp::Set(New(offset).word_, std::clamp<uint64_t>(epoch & Stamp::kMax, 1, kTaken - 1)));
  }
  // It stays in the root until the segment has it: so that a walk finds it wherever it is.
  constexpr SpareWord Taken() const { return SpareWord(Stamp::Set(word_, kTaken)); }
  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t offset() const { return Offset::Get(word_) * pool::kLine; }
  constexpr bool is_new() const { return Stamp::Get(word_) == 0; }
  constexpr bool is_taken() const { return Stamp::Get(word_) == kTaken; }
  // Whether no client can still read it, if what was stamped with less than `safe_epoch` may be reused.
  constexpr bool IsFree(uint64_t safe_epoch) const {
    const uint64_t passed = (safe_epoch - Stamp::Get(word_)) & Stamp::kMax;
    return is_new() || (!is_taken() && passed > 2 && passed < Stamp::kMax - kFarthestAhead);
  }

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(SpareWord) == 8);

struct Root {
  static constexpr size_t kSpares = 2;
  std::array<SpareWord, kSpares> spares;
  std::array<uint64_t, 6> zero;
  std::array<uint64_t, kMostParts> parts;  // offsets; 0: not made yet. Changed by CAS only
};
static_assert(sizeof(Root) == 384);

// ---- the options that change bytes -------------------------------------------------------------------

struct Shape {
  uint32_t entries = kMostEntries;       // of a CurSegment
  uint32_t main = 64;                    // CurSegments that a MainSegment holds before it is split
  uint32_t initial_bits = 0;             // a table begins with 2^initial_bits segments on each node
  uint32_t depth_bits = kMostDepthBits;  // splits of a group: a tag has twice as many depth bits

  constexpr uint64_t segment_bytes() const { return SegmentBytes(entries); }
  constexpr uint64_t most_main_entries() const { return uint64_t{entries} * main; }

  // Pages: 16 of them hold the largest MainSegment, with all that a merge can drop.
  static constexpr uint64_t kUsualPages = 16;
  constexpr uint64_t page_bytes() const {
    const uint64_t most = (most_main_entries() + entries) * sizeof(Entry);
    return std::clamp<uint64_t>(std::bit_ceil(most / kUsualPages + 1), pool::kLine, pool::kPage);
  }
  constexpr uint64_t page_words() const { return page_bytes() / sizeof(Entry); }
  constexpr uint64_t PagesOf(uint64_t words) const { return (words + page_words() - 1) / page_words(); }
  constexpr uint64_t StartBytes(uint64_t pages) const { return pages * page_words() <= 0xffff ? 2 : 4; }
  constexpr uint64_t NumbersOffset(uint64_t pages) const {
    return kStartsOffset + kFingerprints * StartBytes(pages);
  }
  constexpr uint64_t HeadBytes(uint64_t pages) const {
    const uint64_t numbers = std::max(pages, kUsualPages);  // so that nearly all heads have one size
    return pool::RoundUp(NumbersOffset(pages) + numbers * sizeof(uint32_t), pool::kLine);
  }
  constexpr uint64_t MainBytes(uint64_t pages) const { return HeadBytes(pages) + pages * page_bytes(); }
  // A page has a number of 32 bits, an entry an offset of 36: a node may have so many bytes.
  constexpr uint64_t most_region_bytes() const {
    return std::min((Entry::Offset::kMax + 1) * pool::kLine, (uint64_t{1} << 32) * page_bytes());
  }

  // The part of the directory that the segment of this suffix stands in, and the first suffix of a part.
  constexpr size_t PartOf(uint64_t suffix) const {
    return std::max<int>(std::bit_width(suffix) - static_cast<int>(initial_bits), 0);
  }
  constexpr uint64_t FirstOfPart(size_t part) const {
    return part == 0 ? 0 : uint64_t{1} << (initial_bits + part - 1);
  }
  constexpr uint64_t PartEntries(size_t part) const {
    return part == 0 ? uint64_t{1} << initial_bits : FirstOfPart(part);
  }
  constexpr uint64_t PartBytes(size_t part) const {
    return pool::RoundUp(PartEntries(part) * sizeof(uint64_t), pool::kLine);
  }
  // How deep a segment can be split: each split has its entry in some part.
  constexpr uint32_t most_depth() const {
    return std::min<uint32_t>(kMostDepth, initial_bits + static_cast<uint32_t>(kMostParts) - 1);
  }

  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};
static_assert(Shape().page_bytes() == pool::kPage && Shape().HeadBytes(Shape::kUsualPages) <= 1024);
static_assert(Shape().PagesOf(Shape().most_main_entries() + Shape().entries) == Shape::kUsualPages);

// As many bytes of a CurSegment as it has in a table of this shape.
inline std::span<const std::byte> BytesOf(const SegmentImage& image, const Shape& shape) {
  return std::as_bytes(std::span(&image, 1)).first(shape.segment_bytes());
}

// ---- hashes ------------------------------------------------------------------------------------------

// The lowest bits of a hash choose the segment, the highest thirteen are the fingerprints. The depth bits are
// those that splits look at: 2 * depth_bits of them, beginning with the first bit of the group of the depth.
//
//   hash      63..56   55..51   ...   g + 2b - 1 ... g
//             fp       fp2            depth bits of a segment whose depth is in the group g ... g + b - 1
//
// The suffix of the segment, the bits below its depth, may reach into them. Depth bits last for the splits of
// two groups (paper, section 4.2, figure 6, has one), and the entries of the group before are renewed one by
// one, by the merges of a whole group: no split has to read all blocks. The parity says which of the two
// groups an entry is of.
static_assert(2 * kMostDepthBits == kParityShift);
static_assert(kMostDepth + 2 * kMostDepthBits <= 64 - kFingerprintBits, "depth bits are no fingerprints");

// The first bit of the group of a depth.
constexpr uint32_t GroupOf(const Shape& shape, uint32_t depth) {
  return depth / shape.depth_bits * shape.depth_bits;
}
constexpr Tag ParityOf(const Shape& shape, uint32_t group) { return group / shape.depth_bits % 2; }
constexpr Tag FingerprintsOf(uint64_t hash) { return static_cast<Tag>(hash >> (64 - kFingerprintBits)); }
// Whether keys of this hash have such a tag, in some group.
constexpr bool MayBeTagOf(Tag tag, uint64_t hash) { return tag >> kFingerprintShift == FingerprintsOf(hash); }
constexpr Tag TagInGroup(uint64_t hash, const Shape& shape, uint32_t group) {
  const auto bits = static_cast<Tag>((hash >> group) & LowBits(2 * shape.depth_bits));
  return FingerprintsOf(hash) << kFingerprintShift | ParityOf(shape, group) << kParityShift | bits;
}
// The tag of a key in a segment of this depth.
constexpr Tag TagOf(uint64_t hash, const Shape& shape, uint32_t depth) {
  return TagInGroup(hash, shape, GroupOf(shape, depth));
}
constexpr bool IsOfGroup(Tag tag, const Shape& shape, uint32_t group) {
  return (tag >> kParityShift & 1) == ParityOf(shape, group);
}
// The tag of the same key in the group before, of a segment with this suffix; itself in the first group.
constexpr Tag TagBefore(Tag tag, uint64_t suffix, const Shape& shape, uint32_t depth) {
  const uint32_t group = GroupOf(shape, depth);
  if (group == 0) return tag;
  const uint32_t half = shape.depth_bits;
  const auto below = static_cast<Tag>((suffix >> (group - half)) & LowBits(half));
  const auto bits = static_cast<Tag>((tag & LowBits(half)) << half | below);
  const Tag fingerprints = tag >> kFingerprintShift << kFingerprintShift;
  return fingerprints | ParityOf(shape, group - half) << kParityShift | bits;
}
// The bit of the hash that a split of a segment of this depth looks at.
constexpr bool SplitBit(Tag tag, const Shape& shape, uint32_t depth) {
  const uint32_t group = GroupOf(shape, depth);
  const uint32_t first = IsOfGroup(tag, shape, group) ? group : group - shape.depth_bits;
  return (tag >> (depth - first) & 1) != 0;
}

}  // namespace farside::index::sephash
