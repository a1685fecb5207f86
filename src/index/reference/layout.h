// The bytes of the reference table.
//
// On each of its nodes, a table has one array of buckets (the root), made once and never moved. A bucket
// holds two images of its entries; the head word names the one that counts. A writer fills the other one
// and then turns the head. An entry points to the block with the key and the value, on the same node.
//
//   offset   0         8         64                    256                   448      512
//            | head    | zero    | image 0             | image 1             | zero   |
//
//   image    0          8          12      16                        192
//            | checksum | version  | zero  | 22 entries of 8 bytes   |
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "fabric/address.h"
#include "pool/region/layout.h"

namespace farside::index::reference {

inline constexpr uint32_t kLayoutVersion = 2;
inline constexpr size_t kEntries = 22;

// Head of a bucket. Changed by CAS only.
//   63..40    39..33      32      31..0
//   version   takeovers   image   owner (0 = free)
class Head {
 public:
  using OwnerBits = Field<0, 32>;  // the client that holds the lock
  using Image = Field<32, 1>;      // the image that counts
  using Takeovers = Field<33, 7>;  // dead owners since the last change: each may have left an image behind
  using Version = Field<40, 24>;   // raised by every change; 0: the bucket was never written and is empty
  static_assert(TilesWord<OwnerBits, Image, Takeovers, Version>());

  constexpr Head() = default;
  explicit constexpr Head(uint64_t word) : word_(word) {}

  constexpr uint64_t word() const { return word_; }
  constexpr pool::Owner owner() const {
    return pool::Owner::FromBits(static_cast<uint32_t>(OwnerBits::Get(word_)));
  }
  constexpr uint32_t version() const { return static_cast<uint32_t>(Version::Get(word_)); }
  constexpr size_t image() const { return Image::Get(word_); }
  constexpr bool locked() const { return !owner().is_none(); }

  constexpr Head WithOwner(pool::Owner owner) const { return Head(OwnerBits::Set(word_, owner.bits())); }
  constexpr uint64_t takeovers() const { return Takeovers::Get(word_); }
  // Owned by a client that takes the lock from a dead owner, which may have left an image behind.
  constexpr Head TakenOverBy(pool::Owner owner) const {
    const uint64_t counted = takeovers() == Takeovers::kMax ? takeovers() : takeovers() + 1;
    return Head(Takeovers::Set(WithOwner(owner).word_, counted));
  }
  // Free, and the other image counts, with a version that no owner since the last change can have used. The
  // version skips 0 when it wraps.
  constexpr Head Committed() const {
    const uint64_t next = uint64_t{version()} + 1 + takeovers();
    const uint64_t wrapped = next > Version::kMax ? next - Version::kMax : next;
    return Head(Version::Set(Image::Set(0, 1 - image()), wrapped));
  }

  friend constexpr bool operator==(Head, Head) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(Head) == 8);

// Where a block is. 0 is an empty entry: no block lies at offset 0.
//   63..54   53..42                                   41..0
//   tag      size in lines, 0 = larger than fits      offset in lines
class Entry {
 public:
  using Offset = Field<0, 42>;
  using Lines = Field<42, 12>;
  using Tag = Field<54, 10>;  // bits of the key's hash, so that most other keys need not be read
  static_assert(TilesWord<Offset, Lines, Tag>());

  constexpr Entry() = default;
  constexpr Entry(uint64_t offset, uint64_t bytes, uint64_t hash)
      : word_(Offset::Set(0, offset / pool::kLine) |
              Lines::Set(0, bytes / pool::kLine <= Lines::kMax ? bytes / pool::kLine : 0) |
              Tag::Set(0, TagOf(hash))) {}

  static constexpr uint64_t TagOf(uint64_t hash) { return hash >> (64 - 10); }
  constexpr bool empty() const { return word_ == 0; }
  constexpr uint64_t offset() const { return Offset::Get(word_) * pool::kLine; }
  constexpr uint64_t bytes() const { return Lines::Get(word_) * pool::kLine; }
  constexpr bool MayBe(uint64_t hash) const { return !empty() && Tag::Get(word_) == TagOf(hash); }

  friend constexpr bool operator==(Entry, Entry) = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(Entry) == 8);

struct Image {
  uint64_t checksum;  // of the rest
  uint32_t version;   // the head's version with which this image counts
  uint32_t zero;
  std::array<Entry, kEntries> entries;
};
static_assert(sizeof(Image) == 192);
static_assert(offsetof(Image, version) == 8 && offsetof(Image, entries) == 16);

struct Bucket {
  Head head;
  std::array<std::byte, 56> zero;
  std::array<Image, 2> images;
  std::array<std::byte, 64> padding;
};
static_assert(sizeof(Bucket) == 512);
static_assert(offsetof(Bucket, images) == 64);
// One READ samples a bucket within the window that the fabric bounds.
static_assert(sizeof(Bucket) <= fabric::kWindowBytes && fabric::kPageBytes % sizeof(Bucket) == 0);

inline constexpr size_t kImagesOffset = offsetof(Bucket, images);
constexpr fabric::FarAddr ImageAt(fabric::FarAddr bucket, size_t image) {
  return bucket + kImagesOffset + image * sizeof(Image);
}

// A root has room for its buckets wherever the block begins: they start at the first multiple of a bucket's
// size.
constexpr uint64_t RootBytes(uint64_t buckets) { return (buckets + 1) * sizeof(Bucket); }
constexpr fabric::FarAddr FirstBucket(fabric::FarAddr root) {
  return fabric::FarAddr(root.node, pool::RoundUp(root.offset, sizeof(Bucket)));
}

}  // namespace farside::index::reference
