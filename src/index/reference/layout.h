// The bytes of the reference table.
//
// A table is an array of buckets. A bucket holds two images of its entries; the head word says which of
// them counts. A writer makes the other one and then turns the head:
//
//   offset   0         8         64                    256                   448      512
//            | head    | zero    | image 0             | image 1             | zero   |
//
//   image    0          8          12      16         60         104        148       192
//            | checksum | version  | zero  | entry 0  | entry 1  | entry 2  | entry 3 |
//
//   entry    0        1           2            3      4            20                 44
//            | state  | key size  | value size | zero | key        | value            |
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "fabric/address.h"

namespace farside::index::reference {

inline constexpr size_t kMaxKeyBytes = 16;
inline constexpr size_t kMaxValueBytes = 24;
inline constexpr size_t kEntries = 4;

// Head of a bucket. Changed by CAS only.
//   63..32    31..25      24      23..0
//   version   takeovers   image   owner (0 = free)
class Head {
 public:
  using Owner = Field<0, 24>;    // the client that holds the lock
  using Image = Field<24, 1>;    // which image counts
  using Takeovers = Field<25, 7>;  // owners since the last change that may have written an image and not committed it
  using Version = Field<32, 32>; // raised by every change; 0: the bucket was never written and is empty
  static_assert(TilesWord<Owner, Image, Takeovers, Version>());

  constexpr Head() = default;
  explicit constexpr Head(uint64_t word) : word_(word) {}

  constexpr uint64_t word() const { return word_; }
  constexpr uint32_t owner() const { return static_cast<uint32_t>(Owner::Get(word_)); }
  constexpr uint32_t version() const { return static_cast<uint32_t>(Version::Get(word_)); }
  constexpr size_t image() const { return Image::Get(word_); }
  constexpr bool locked() const { return owner() != 0; }

  constexpr Head WithOwner(uint32_t owner) const { return Head(Owner::Set(word_, owner)); }
  constexpr uint64_t takeovers() const { return Takeovers::Get(word_); }
  // Owned by another, after one that may have left an image behind.
  constexpr Head TakenOverBy(uint32_t owner) const {
    const uint64_t counted = takeovers() == Takeovers::kMax ? takeovers() : takeovers() + 1;
    return Head(Takeovers::Set(WithOwner(owner).word_, counted));
  }
  // Free, and the other image counts, with a version that no owner since the last change can have used. Version 0 is
  // skipped when it wraps.
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

enum class EntryState : uint8_t { kEmpty = 0, kUsed = 1 };

struct Entry {
  EntryState state;
  uint8_t key_bytes;
  uint8_t value_bytes;
  uint8_t zero;
  std::array<char, kMaxKeyBytes> key;
  std::array<char, kMaxValueBytes> value;
};
static_assert(sizeof(Entry) == 44);
static_assert(offsetof(Entry, key) == 4 && offsetof(Entry, value) == 20);

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

}  // namespace farside::index::reference
