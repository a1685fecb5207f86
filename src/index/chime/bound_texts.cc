#include "index/chime/bound_texts.h"

#include <utility>

#include "farside/result.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::Op;

namespace {

// The share of the cache's bytes: one part of so many.
constexpr uint64_t kPartOfCache = 8;

}  // namespace

Task<bool> BoundTexts::IsBelowFence(Op& op, Key key, Header header, uint64_t clears) {
  const std::optional<bool> known = IsBelowKnownFence(key, header);
  if (known.has_value()) co_return *known;
  const Bound fence = co_await FenceOf(op, header, clears);
  co_return IsBelow(key, fence);
}

std::optional<bool> BoundTexts::IsBelowKnownText(const Key& key, BoundRef ref) const {
  if (!ref.in_block()) return key.text < TextOf(key.prefix, ref.length());
  if (key.text.size() <= kPrefixBytes) return true;  // the fence is longer, and begins alike
  const auto known = texts_.find(ref.word());
  if (known == texts_.end()) return std::nullopt;
  return key.text < known->second;
}

std::optional<Bound> BoundTexts::Known(uint64_t prefix, BoundRef ref) const {
  if (ref.infinite()) return Bound::Beyond();
  if (!ref.in_block()) return Bound{.prefix = prefix, .text = TextOf(prefix, ref.length())};
  const auto known = texts_.find(ref.word());
  if (known == texts_.end()) return std::nullopt;
  return Bound{.prefix = prefix, .text = known->second};
}

Task<Bound> BoundTexts::Resolve(Op& op, uint64_t prefix, BoundRef ref, uint64_t clears) {
  std::optional<Bound> known = Known(prefix, ref);
  if (known.has_value()) co_return std::move(*known);
  BlockBuffer buffer;
  co_await table_.ReadBlock(op, ref.block(), buffer);
  const Result<pool::BlockView> view = pool::DecodeBlock(buffer.bytes());
  if (!view.ok()) co_return view.error();
  // INVARIANT chime/8: after a Clear, what an earlier READ has named may be retired.
  if (clears == clears_) Remember(ref, view->key);
  co_return Bound::Of(view->key);
}

void BoundTexts::Remember(BoundRef ref, std::string_view text) {
  const uint64_t most = table_.options.cache_bytes / kPartOfCache;
  const uint64_t cost = text.size() + sizeof(std::string) + 4 * sizeof(uint64_t);
  if (bytes_ + cost > most) {
    texts_.clear();
    bytes_ = 0;
  }
  if (cost <= most && texts_.emplace(ref.word(), text).second) bytes_ += cost;
}

void BoundTexts::Clear() {
  ++clears_;
  texts_.clear();
  bytes_ = 0;
}

}  // namespace farside::index::chime
