#include "index/chime/inner.h"

#include <algorithm>

namespace farside::index::chime {

Inner::Inner(const Shape& shape, NodePtr at, Bound fence, const Header& header, std::span<const Pivot> pivots)
    : at_(at),
      sibling_(NodePtr(header.sibling)),
      fence_ref_(BoundRef(header.fence_ref)),
      fence_(std::move(fence)) {
  prefixes_.reserve(pivots.size());
  children_.reserve(pivots.size());
  if (!shape.inline_keys) texts_.reserve(pivots.size());
  for (const Pivot& pivot : pivots) {
    prefixes_.push_back(pivot.raw.prefix);
    children_.push_back(pivot.raw.child);
    if (!shape.inline_keys) texts_.push_back(pivot.bound.text);
  }
}

size_t Inner::IndexOf(const Key& key) const {
  const auto [low, high] = std::equal_range(prefixes_.begin(), prefixes_.end(), key.prefix);
  auto above = static_cast<size_t>(high - prefixes_.begin());
  // Of those with the same prefix, the whole keys decide.
  if (!texts_.empty() && low != high) {
    const auto first = texts_.begin() + (low - prefixes_.begin());
    const auto last = texts_.begin() + (high - prefixes_.begin());
    above = static_cast<size_t>(std::upper_bound(first, last, key.text) - texts_.begin());
  }
  return above == 0 ? 0 : above - 1;
}

size_t Inner::IndexBelow(const Bound& bound) const {
  size_t above = prefixes_.size();
  if (!bound.infinite) {
    const auto [low, high] = std::equal_range(prefixes_.begin(), prefixes_.end(), bound.prefix);
    above = static_cast<size_t>(low - prefixes_.begin());
    if (!texts_.empty() && low != high) {
      const auto first = texts_.begin() + (low - prefixes_.begin());
      const auto last = texts_.begin() + (high - prefixes_.begin());
      above = static_cast<size_t>(std::lower_bound(first, last, bound.text) - texts_.begin());
    }
  }
  return above == 0 ? 0 : above - 1;
}

Bound Inner::LowerBound(const Shape& shape, size_t i) const {
  if (!shape.inline_keys) return Bound::Of(texts_[i]);
  return prefixes_[i] == 0 ? Bound() : Bound::Of(TextOf(prefixes_[i], kPrefixBytes));
}

size_t Inner::Find(NodePtr child) const {
  return static_cast<size_t>(std::find(children_.begin(), children_.end(), child) - children_.begin());
}

uint64_t Inner::bytes() const {
  const auto heap = [](const std::string& text) {
    return text.capacity() > std::string().capacity() ? text.capacity() + 1 : 0;
  };
  uint64_t bytes = sizeof(Inner) + prefixes_.capacity() * sizeof(uint64_t) +
                   children_.capacity() * sizeof(NodePtr) + texts_.capacity() * sizeof(std::string) +
                   heap(fence_.text);
  for (const std::string& text : texts_) bytes += heap(text);
  return bytes;
}

}  // namespace farside::index::chime
