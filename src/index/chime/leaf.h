// Leaves as they were READ: bytes, and what follows from them. Nothing here touches far memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/chime/key.h"
#include "index/chime/layout.h"

namespace farside::index::chime {

// The first slot of an entry's neighbourhood. With keys=bytes it follows from the tag, so entries are moved
// without READing their blocks.
size_t HomeOf(const Shape& shape, const Entry& entry);

// The entries among which a key may stand; or, as a guess, one of them.
class Neighbourhood {
 public:
  // `half`: of the key, and so of every leaf where it is searched for (chime/11).
  Neighbourhood(const Shape& shape, size_t home, Half half)
      : shape_(shape),
        half_(half),
        home_(home),
        size_(shape.neighbourhood),
        tail_bytes_(shape.tail_bytes(home)),
        wrapped_bytes_(shape.wrapped_bytes(home)) {}

  static Neighbourhood Guess(const Shape& shape, size_t slot, Half half) {
    return Neighbourhood(shape, OneSlot{slot}, half);
  }

  // Whether the key may also stand elsewhere.
  bool is_guess() const { return is_guess_; }
  size_t size() const { return size_; }
  // What to READ: `tail` from SlotOffset(home) on; and, if the neighbourhood wraps around, `wrapped` from
  // SlotOffset(0) on.
  size_t home() const { return home_; }
  std::span<std::byte> tail() { return std::span(room_).first(tail_bytes_); }
  std::span<std::byte> wrapped() { return std::span(room_).subspan(tail_bytes_, wrapped_bytes_); }
  // Takes it from all lines of the leaf.
  void CopyFrom(std::span<const std::byte> lines) {
    const auto copy = [&](size_t slot, std::span<std::byte> to) {
      std::copy_n(lines.begin() + static_cast<std::ptrdiff_t>(SlotOffset(slot) - pool::kLine), to.size(),
                  to.begin());
    };
    copy(home_, tail());
    copy(0, wrapped());
  }
  // The i-th slot from the home on, and its entry.
  size_t SlotAt(size_t i) const { return shape_.SlotAt(home_, i); }
  Entry Get(size_t i) const { return LoadEntry(shape_, half_, room_.data() + i * kEntryBytes); }

 private:
  struct OneSlot {
    size_t slot;
  };
  Neighbourhood(const Shape& shape, OneSlot only, Half half)
      : shape_(shape),
        half_(half),
        home_(only.slot),
        size_(1),
        is_guess_(true),
        tail_bytes_(kEntryBytes),
        wrapped_bytes_(0) {}

  const Shape& shape_;
  Half half_;
  size_t home_;
  size_t size_;
  bool is_guess_ = false;
  uint64_t tail_bytes_;
  uint64_t wrapped_bytes_;
  std::array<std::byte, kMostNeighbourhood * kEntryBytes> room_;
};

// A whole leaf. Its header tells the half of its keys, so it has to be set before entries are decoded.
class Leaf {
 public:
  Header header{};

  Entry Get(const Shape& shape, size_t slot) const {
    return LoadEntry(shape, HalfOf(header), lines_.data() + SlotOffset(slot) - pool::kLine);
  }
  void Set(const Shape& shape, size_t slot, const Entry& entry) {
    StoreEntry(shape, lines_.data() + SlotOffset(slot) - pool::kLine, entry);
  }
  // Everything behind the header.
  std::span<std::byte> lines(const Shape& shape) {
    return std::span(lines_).first(shape.leaf_lines() * pool::kLine);
  }
  std::span<const std::byte> lines(const Shape& shape) const {
    return std::span(lines_).first(shape.leaf_lines() * pool::kLine);
  }
  std::span<std::byte> header_bytes() { return std::as_writable_bytes(std::span(&header, 1)); }
  size_t Count(const Shape& shape) const;
  // Whether all bytes of the slot are zero.
  bool IsBlank(size_t slot) const {
    const std::byte* const from = lines_.data() + SlotOffset(slot) - pool::kLine;
    return (LoadU64(from) | LoadU64(from + 8)) == 0;
  }
  // Its range belongs to another leaf (chime/9). It has no entries, and never will have any.
  bool dead() const { return header.heir != 0; }

 private:
  std::array<std::byte, kMostLeafLines * pool::kLine> lines_{};
};

// How to make room for an entry of this home: the entry of slot path[i] moves to path[i + 1], the last of
// which is free, and the new entry goes to path[0]. Empty if no arrangement of these entries has room for it.
std::optional<std::vector<size_t>> FindRoom(const Shape& shape, const Leaf& leaf, size_t home);

// Brings a leaf to rest after its lock's owner has died at any step: entries that were leaving are cleared,
// and of an entry that was being moved one copy is cleared. True if entries were changed.
bool Normalize(const Shape& shape, Leaf& leaf);

// Step 2 of a merge: the heir gets the range of the dead leaf (chime/9).
inline void Inherit(Header& heir, const Header& dead) {
  heir.fence_prefix = dead.fence_prefix;
  heir.fence_ref = dead.fence_ref;
  heir.sibling = dead.sibling;
  heir.moves += 2;
}

// How a leaf that has no room for a key is divided.
struct Division {
  std::string separator;  // entries at or above it leave
  uint64_t leaving = 0;
};
// By prefixes alone. Empty if too many keys share a prefix: then it takes the whole keys.
std::optional<Division> DivideByPrefix(const Shape& shape, const Leaf& leaf, uint64_t added);
// `keys[slot]` for every slot that is used.
Division DivideByKey(const Shape& shape, const Leaf& leaf, std::span<const std::string> keys,
                     std::string_view added);

}  // namespace farside::index::chime
