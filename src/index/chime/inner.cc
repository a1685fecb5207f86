#include "index/chime/inner.h"

#include <algorithm>

namespace farside::index::chime {
namespace {

// How many of them are not above the key: first by the last one of every 8, then among 8. Unlike in a binary
// search, no load depends on an earlier one, and no branch is hard to predict.
size_t CountUpTo(std::span<const uint64_t> ascending, uint64_t key) {
  constexpr size_t kStep = 8;
  size_t steps = 0;
  for (size_t i = kStep - 1; i < ascending.size(); i += kStep) steps += ascending[i] <= key ? 1 : 0;
  size_t count = kStep * steps;
  const size_t end = std::min(count + kStep, ascending.size());
  for (size_t i = kStep * steps; i < end; ++i) count += ascending[i] <= key ? 1 : 0;
  return count;
}

}  // namespace

void SortPivots(std::vector<Pivot>& pivots) {
  std::sort(pivots.begin(), pivots.end(), [](const Pivot& a, const Pivot& b) {
    return a.raw.prefix != b.raw.prefix ? a.raw.prefix < b.raw.prefix : a.bound.text < b.bound.text;
  });
}

size_t FirstFreeSlot(std::span<const Pivot> pivots) {
  size_t slot = 0;
  while (std::any_of(pivots.begin(), pivots.end(), [slot](const Pivot& p) { return p.slot == slot; })) ++slot;
  return slot;
}

Inner::Inner(const Shape& shape, NodePtr at, const Bound& fence, const Header& header,
             std::span<const Pivot> pivots)
    : at_(at),
      sibling_(NodePtr(header.sibling)),
      fence_prefix_(header.fence_prefix),
      size_(static_cast<uint32_t>(pivots.size())),
      infinite_(fence.infinite),
      dead_(header.heir != 0) {
  for (size_t i = 0; i < size_; ++i) {
    words()[i] = pivots[i].raw.prefix;
    words()[size_ + i] = CountBits::Set(pivots[i].raw.child.word(), CountBits::kMax);
  }
  if (shape.inline_keys) return;
  texts_ = std::make_unique<Texts>();
  texts_->fence_ref = BoundRef(header.fence_ref);
  texts_->bounds.reserve(pivots.size() + 1);
  for (const Pivot& pivot : pivots) texts_->bounds.push_back(pivot.bound.text);
  texts_->bounds.push_back(fence.text);
}

std::string Inner::FenceText() const {
  return texts_ == nullptr ? TextOf(fence_prefix_, kPrefixBytes) : texts_->bounds.back();
}

Bound Inner::fence() const {
  if (infinite_) return Bound::Beyond();
  return {.prefix = fence_prefix_, .text = FenceText()};
}

BoundRef Inner::fence_ref() const {
  if (texts_ != nullptr) return texts_->fence_ref;
  return infinite_ ? BoundRef::Beyond() : BoundRef::Short(kPrefixBytes);
}

size_t Inner::IndexOf(const Key& key) const {
  const std::span<const uint64_t> all = prefixes();
  size_t above = CountUpTo(all, key.prefix);
  // Among pivots with the key's prefix, the whole texts decide.
  if (texts_ != nullptr) {
    while (above > 0 && all[above - 1] == key.prefix && texts_->bounds[above - 1] > key.text) --above;
  }
  return above == 0 ? 0 : above - 1;
}

size_t Inner::IndexBelow(const Bound& bound) const {
  const std::span<const uint64_t> all = prefixes();
  size_t above = all.size();
  if (!bound.infinite) {
    above = static_cast<size_t>(std::lower_bound(all.begin(), all.end(), bound.prefix) - all.begin());
    if (texts_ != nullptr) {
      while (above < all.size() && all[above] == bound.prefix && texts_->bounds[above] < bound.text) ++above;
    }
  }
  return above == 0 ? 0 : above - 1;
}

Bound Inner::LowerBound(size_t i) const {
  if (texts_ != nullptr) return Bound::Of(texts_->bounds[i]);
  return prefixes()[i] == 0 ? Bound() : Bound::Of(TextOf(prefixes()[i], kPrefixBytes));
}

size_t Inner::Find(NodePtr child) const {
  size_t i = 0;
  while (i < size_ && this->child(i) != child) ++i;
  return i;
}

bool Inner::EndsAt(size_t i, const Bound& end) const {
  if (i + 1 == size_) return infinite_ ? end.infinite : !end.infinite && FenceText() == end.text;
  if (end.infinite || prefixes()[i + 1] != end.prefix) return false;
  return texts_ == nullptr || texts_->bounds[i + 1] == end.text;
}

void Inner::RememberCount(size_t i, const Bound& end, uint32_t count) const {
  if (EndsAt(i, end)) child_word(i) = CountBits::Set(child_word(i), count);
}

void Inner::TakeCountsOf(const Inner& before) const {
  size_t j = 0;
  for (size_t i = 0; i < size_; ++i) {
    while (j < before.size_ && before.prefixes()[j] < prefixes()[i]) ++j;
    size_t same = j;
    while (same < before.size_ && before.prefixes()[same] == prefixes()[i] && before.child(same) != child(i))
      ++same;
    if (same == before.size_ || before.child(same) != child(i)) continue;
    const Bound end = same + 1 < before.size_ ? before.LowerBound(same + 1) : before.fence();
    if (EndsAt(i, end)) child_word(i) = before.children()[same];
  }
}

uint64_t Inner::bytes() const {
  uint64_t bytes = sizeof(Inner) + 2 * size_ * sizeof(uint64_t);
  if (texts_ == nullptr) return bytes;
  bytes += sizeof(*texts_) + texts_->bounds.capacity() * sizeof(std::string);
  for (const std::string& text : texts_->bounds) {
    if (text.capacity() > std::string().capacity()) bytes += text.capacity() + 1;
  }
  return bytes;
}

}  // namespace farside::index::chime
