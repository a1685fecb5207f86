// Inner nodes: as they stand in far memory, and as a client keeps them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/chime/key.h"
#include "index/chime/layout.h"

namespace farside::index::chime {

// The bytes of an inner node.
class InnerImage {
 public:
  Header header{};
  // How often the cache had been cleared before the node was READ (InnerNodes::NewImage). An image from
  // before the last clear does not go into the cache (chime/8).
  uint64_t clears = 0;

  // Its range belongs to another node (chime/12). It still leads to where its keys were when it died.
  bool dead() const { return header.heir != 0; }
  // Where to go with a key that the node does not have (chime/6): to the heir if the node is dead.
  NodePtr next() const { return NodePtr(dead() ? header.heir : header.sibling); }
  RawPivot Get(const Shape& shape, size_t slot) const {
    return LoadPivot(shape, lines_.data() + shape.PivotOffset(slot) - pool::kLine);
  }
  void Set(const Shape& shape, size_t slot, const RawPivot& pivot) {
    StorePivot(shape, lines_.data() + shape.PivotOffset(slot) - pool::kLine, pivot);
  }
  std::span<std::byte> lines(const Shape& shape) {
    return std::span(lines_).first(shape.inner_lines() * pool::kLine);
  }
  std::span<const std::byte> lines(const Shape& shape) const {
    return std::span(lines_).first(shape.inner_lines() * pool::kLine);
  }

 private:
  std::array<std::byte, kMostInnerLines * pool::kLine> lines_{};
};

// A pivot with its whole text.
struct Pivot {
  Bound bound;
  RawPivot raw;
  size_t slot = 0;
};
void SortPivots(std::vector<Pivot>& pivots);
// The first slot without a pivot that counts; `fanout` if there is none.
size_t FirstFreeSlot(std::span<const Pivot> pivots);

// An inner node as a client caches it: its pivots in order. Never changed, only replaced. Clients cache many
// of them, so their bytes are counted; and prefixes and children follow the object directly, so that
// following a pointer to it costs one cache miss.
class Inner {
 public:
  // `pivots`: only pivots that count, ascending, at least one.
  static std::shared_ptr<const Inner> Make(const Shape& shape, NodePtr at, const Bound& fence,
                                           const Header& header, std::span<const Pivot> pivots) {
    return std::shared_ptr<const Inner>(new (2 * pivots.size()) Inner(shape, at, fence, header, pivots));
  }
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;
  ~Inner() = default;
  static void operator delete(void* memory) { ::operator delete(memory); }

  NodePtr at() const { return at_; }
  Bound fence() const;
  BoundRef fence_ref() const;
  NodePtr sibling() const { return sibling_; }
  bool dead() const { return dead_; }
  size_t size() const { return size_; }
  NodePtr child(size_t i) const { return ChildIn(children()[i]); }
  // The index of a child; size() if the node does not name it.
  size_t Find(NodePtr child) const;
  // What the lock of the i-th child counted when the child ended where this node says (chime/14). Empty: that
  // is not known. Of parents of leaves.
  std::optional<uint32_t> CountOf(size_t i) const {
    const auto count = static_cast<uint32_t>(CountBits::Get(children()[i]));
    return count == NodeLock::kMostCount ? std::nullopt : std::optional(count);
  }
  // Remembers it: `end` is the fence of the child, from the READ that showed the count.
  void RememberCount(size_t i, const Bound& end, uint32_t count) const;
  // The counts of the children that end where they ended in a node that was remembered before.
  void TakeCountsOf(const Inner& before) const;
  // The lower bound of the i-th child's range. That of the first child of all is the empty key.
  Bound LowerBound(size_t i) const;

  // Whether the key is below the fence.
  bool Has(const Key& key) const {
    if (infinite_) return true;
    if (key.prefix != fence_prefix_) return key.prefix < fence_prefix_;
    return key.text < FenceText();
  }
  // The index of the child whose range has the key. The key is not below the first pivot.
  size_t IndexOf(const Key& key) const;
  // The index of the child that has the keys right below a bound, which is above the first pivot.
  size_t IndexBelow(const Bound& bound) const;
  NodePtr ChildOf(const Key& key) const { return child(IndexOf(key)); }
  // All memory that it takes.
  uint64_t bytes() const;

  // For the cache: whether it was used since it was last considered for eviction.
  bool used() const { return used_; }
  void set_used(bool used) const { used_ = used; }

 private:
  Inner(const Shape& shape, NodePtr at, const Bound& fence, const Header& header,
        std::span<const Pivot> pivots);
  // A child as it is remembered: in the place of its level, which follows from that of the node, stands the
  // count of its lock.
  //   63..42   41..36   35..0
  //   count    node     line
  using CountBits = Field<42, 22>;
  static_assert(TilesWord<LineBits, NodeBits, CountBits>() && CountBits::kMax == NodeLock::kMostCount);
  NodePtr ChildIn(uint64_t word) const {
    return NodePtr(NodePtr::Level::Set(word & (LineBits::kMask | NodeBits::kMask), at_.level() - 1));
  }
  bool EndsAt(size_t i, const Bound& end) const;
  // With so many words behind the object.
  static void* operator new(size_t bytes, size_t words) {
    return ::operator new(bytes + words * sizeof(uint64_t));
  }
  static void operator delete(void* memory, size_t /*words*/) { ::operator delete(memory); }
  // All prefixes, then all children.
  uint64_t* words() { return reinterpret_cast<uint64_t*>(this + 1); }
  // Counts are only remembered: they change nothing of what the node says.
  uint64_t& child_word(size_t i) const { return const_cast<Inner*>(this)->words()[size_ + i]; }
  const uint64_t* words() const { return reinterpret_cast<const uint64_t*>(this + 1); }
  std::span<const uint64_t> prefixes() const { return {words(), size_}; }
  std::span<const uint64_t> children() const { return {words() + size_, size_}; }
  std::string FenceText() const;

  // What keys=bytes needs besides prefixes.
  struct Texts {
    BoundRef fence_ref;
    std::vector<std::string> bounds;  // the whole pivots, then the fence
  };

  NodePtr at_;
  NodePtr sibling_;
  uint64_t fence_prefix_;
  uint32_t size_;
  bool infinite_;  // there is no fence
  bool dead_;
  mutable bool used_ = false;
  std::unique_ptr<Texts> texts_;
};
static_assert(sizeof(Inner) % alignof(uint64_t) == 0, "words follow");

}  // namespace farside::index::chime
