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

// What a client keeps of an inner node: its pivots in order. Never changed, only replaced.
class Inner {
 public:
  // `pivots` in ascending order, those that count; at least one.
  Inner(const Shape& shape, NodePtr at, Bound fence, const Header& header, std::span<const Pivot> pivots);

  NodePtr at() const { return at_; }
  const Bound& fence() const { return fence_; }
  BoundRef fence_ref() const { return fence_ref_; }
  NodePtr sibling() const { return sibling_; }
  size_t size() const { return children_.size(); }
  NodePtr child(size_t i) const { return children_[i]; }
  // Which child it is; size() if none.
  size_t Find(NodePtr child) const;
  // What no key of the i-th child is below. The first one of all has none: the empty key.
  Bound LowerBound(const Shape& shape, size_t i) const;

  // Which child has the keys from this one on. The key is not below the first pivot.
  size_t IndexOf(const Key& key) const;
  // Which child has the keys right below a bound that is above the first pivot.
  size_t IndexBelow(const Bound& bound) const;
  NodePtr ChildOf(const Key& key) const { return children_[IndexOf(key)]; }
  // Memory that it takes, all told.
  uint64_t bytes() const;

 private:
  NodePtr at_;
  NodePtr sibling_;
  BoundRef fence_ref_;
  Bound fence_;
  std::vector<uint64_t> prefixes_;
  std::vector<NodePtr> children_;
  std::vector<std::string> texts_;  // keys=bytes: the whole pivots
};

}  // namespace farside::index::chime
