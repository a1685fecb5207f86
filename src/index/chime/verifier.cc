#include "index/chime/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/chime/circle.h"
#include "index/chime/errors.h"
#include "index/chime/key.h"

namespace farside::index::chime {

using fabric::Op;
using fabric::Read;

Task<Done> Verifier::Verify(Op& op) {
  co_await FinishMerges(op);
  LowerBounds bounds;
  co_await VerifyLeaves(op, bounds);
  for (uint32_t level = 1; level <= root_.node().level(); ++level)
    bounds = co_await VerifyLevel(op, level, bounds);
  co_return Done{};
}

Task<Done> Verifier::FinishMerges(Op& op) {
  for (uint32_t level = root_.node().level(); level > 0; --level) {
    Circle circle;
    for (NodePtr at = co_await locator_.Leftmost(op, level); !at.null();) {
      if (circle.Closes(at)) co_return Damaged(at, kInCircles);
      const auto header = co_await op.InOrder(Read<Header>(table_.At(at)));
      if (!NodeLock(header.lock).free()) co_await locks_.AwaitUnlocked(op, at, LockWait::kLong);
      at = NodePtr(header.sibling);
    }
  }
  co_return Done{};
}

Task<Done> Verifier::VerifyLeaves(Op& op, LowerBounds& bounds) {
  Bound low;
  Circle circle;
  for (NodePtr at = co_await locator_.Leftmost(op, 0); !at.null();) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    Leaf leaf;
    co_await leaves_.Read(op, at, leaf, LockWait::kLong);
    if (!NodeLock(leaf.header.lock).free()) {
      // Its owner is dead: no other client is there.
      co_await locks_.AwaitUnlocked(op, at, LockWait::kLong);
      co_await leaves_.Read(op, at, leaf, LockWait::kLong);
    }
    const Bound fence = co_await bounds_.FenceOf(op, leaf.header, bounds_.clears());
    co_await VerifyLeaf(op, at, leaf, low, fence);
    bounds.emplace(at.word(), low.text);
    low = fence;
    const NodePtr next(leaf.header.sibling);
    if (fence.infinite != next.null()) co_return Damaged(at, "ends in the wrong place");
    at = next;
  }
  co_return Done{};
}

Task<Verifier::LowerBounds> Verifier::VerifyLevel(Op& op, uint32_t level, const LowerBounds& below) {
  LowerBounds bounds;
  std::string low;
  Circle circle;
  for (NodePtr at = co_await locator_.Leftmost(op, level); !at.null();) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    InnerImage image;
    const DecodedInner node = co_await inner_nodes_.ReadAtRest(op, at, image);
    if (image.dead()) co_return Damaged(at, "is dead, and named by the node before it");
    if (node.beyond != 0) co_return Damaged(at, "has a pivot beyond its fence");
    for (const Pivot& pivot : node.pivots) {
      const auto child = below.find(pivot.raw.child.word());
      if (child == below.end()) co_return Damaged(at, "has a child that its level does not have");
      // With keys=inline, a pivot of 0 is that of the first node of all: the empty text.
      const bool is_lowest = table_.shape().inline_keys && pivot.raw.prefix == 0;
      const std::string_view text = is_lowest ? std::string_view() : std::string_view(pivot.bound.text);
      if (child->second != text) co_return Damaged(at, "has a pivot that is not its child's");
      if (&pivot == &node.pivots.front() && text != low)
        co_return Damaged(at, "does not begin where the one before it ends");
    }
    if (level == 1 && IsAcross(Bound::Of(low), node.fence))
      co_return Damaged(at, "has leaves of both halves of the tree");
    bounds.emplace(at.word(), low);
    low = node.fence.text;
    const NodePtr next(image.header.sibling);
    if (node.fence.infinite != next.null()) co_return Damaged(at, "ends in the wrong place");
    at = next;
  }
  co_return std::move(bounds);
}

// INVARIANT chime/11: with keys=inline, no leaf and no parent of leaves has keys on both sides of the middle.
bool Verifier::IsAcross(const Bound& low, const Bound& fence) const {
  return table_.shape().inline_keys && low.prefix < kMiddle && (fence.infinite || fence.prefix > kMiddle);
}

Task<Done> Verifier::VerifyLeaf(Op& op, NodePtr at, const Leaf& leaf, const Bound& low, const Bound& fence) {
  const Shape& shape = table_.shape();
  if (leaf.dead()) co_return Damaged(at, "is dead, and named by the leaf before it");
  if (leaf.header.leaving != 0 || leaf.header.moves % 2 != 0)
    co_return Damaged(at, "is in the middle of a split that no client does");
  if (!fence.infinite && fence.text <= low.text) co_return Damaged(at, "ends before it begins");
  if (IsAcross(low, fence)) co_return Damaged(at, "has keys of both halves of the tree");
  std::vector<Item> items;
  for (size_t slot = 0; slot < shape.span; ++slot) {
    const Entry entry = leaf.Get(shape, slot);
    if (shape.inline_keys && !entry.used && !leaf.IsBlank(slot))
      co_return Damaged(at, "has bytes where no entry is");
    if (!entry.used) continue;
    items.push_back({.prefix = entry.key, .value = entry.value});
    const size_t home = HomeOf(shape, entry);
    const size_t distance = slot >= home ? slot - home : slot + shape.span - home;
    if (distance >= shape.neighbourhood) co_return Damaged(at, "has an entry outside of its neighbourhood");
  }
  co_await VerifyRecords(op, at, std::move(items), low, fence);
  co_return Done{};
}

Task<Done> Verifier::VerifyRecords(Op& op, NodePtr at, std::vector<Item> items, const Bound& low,
                                   const Bound& fence) {
  const std::vector<Record> records = co_await records_.Read(op, items);
  std::vector<std::string_view> keys;
  for (size_t i = 0; i < records.size(); ++i) {
    const Key key(records[i].key);
    keys.push_back(key.text);
    if (key.text < low.text || !IsBelow(key, fence)) {
      co_return Error(ErrorCode::kCorrupt,
                      fmt::format("the key \"{}\" stands in a leaf that has the keys from \"{}\" to \"{}\"",
                                  Escape(key.text), Escape(low.text), Escape(fence.text)));
    }
    const bool is_its_entry =
        key.prefix == items[i].prefix &&
        (table_.shape().inline_keys || BlockRef(items[i].value).tag() == TagOf(Hash64(key.text)));
    if (!is_its_entry) co_return Damaged(at, "has an entry that is not that of its block");
  }
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) {
    co_return Error(ErrorCode::kCorrupt,
                    fmt::format("the key \"{}\" stands twice in its leaf", Escape(*twice)));
  }
  co_return Done{};
}

}  // namespace farside::index::chime
