#include "index/chime/last_finder.h"

#include <memory>
#include <utility>
#include <vector>

#include "index/chime/circle.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::Op;

namespace {

constexpr int kMostAttempts = 1000;

bool EndsBelow(const Bound& fence, const Bound& upper) {
  return !fence.infinite && (upper.infinite || fence.text < upper.text);
}

}  // namespace

Task<bool> LastFinder::Try(Op& op, const KeyRange& range, Record& record) {
  Bound upper = range.to.has_value() ? Bound::Of(*range.to) : Bound::Beyond();
  bool found = false;
  while (!found && (upper.infinite || upper.text > range.from)) {
    Bound low;
    Leaf leaf;
    co_await ReadBelow(op, upper, leaf, low);
    std::vector<Item> items;
    records_.Collect(leaf, range, items);
    std::vector<Record> records = co_await records_.Read(op, items);
    for (Record& candidate : records) {
      if (!range.Has(candidate.key) || !IsBelow(Key(candidate.key), upper)) continue;
      if (found && candidate.key < record.key) continue;
      record = std::move(candidate);
      found = true;
    }
    if (!low.infinite && !upper.infinite && low.text >= upper.text) break;
    upper = low;
  }
  co_return found;
}

Task<Done> LastFinder::ReadBelow(Op& op, const Bound& upper, Leaf& leaf, Bound& low) {
  const uint64_t clears = bounds_.clears();
  Position position = co_await FindBelow(op, upper, low);
  co_await leaves_.Read(op, position.node, leaf);
  // The parent may have led to a dead leaf; a dead leaf that a sibling names counts as an empty one
  // (chime/9).
  for (int attempt = 0; leaf.dead() && attempt < kMostAttempts && !Mutant(kHeirIgnored); ++attempt) {
    position = co_await locator_.GoToHeir(op, position, leaf.header);
    co_await leaves_.Read(op, position.node, leaf);
  }
  Bound fence = co_await bounds_.FenceOf(op, leaf.header, clears);
  Circle circle;
  while (EndsBelow(fence, upper)) {
    low = fence;
    const NodePtr next(leaf.header.sibling);
    if (circle.Closes(next)) co_return Damaged(next, kInCircles);
    co_await leaves_.Read(op, next, leaf);
    fence = co_await bounds_.FenceOf(op, leaf.header, clears);
  }
  co_return Done{};
}

Task<Position> LastFinder::FindBelow(Op& op, const Bound& upper, Bound& low) {
  if (root_.node().null()) co_await root_.Read(op);
  NodePtr at = root_.node();
  NodePtr parent;
  low = Bound();
  for (int step = 0; step < kMostAttempts && !at.is_leaf(); ++step) {
    const std::shared_ptr<const Inner> node = co_await inner_nodes_.Get(op, at);
    if (EndsBelow(node->fence(), upper)) {
      at = node->sibling();
      continue;
    }
    const size_t child = node->IndexBelow(upper);
    low = node->LowerBound(child);
    parent = at;
    at = node->child(child);
  }
  if (!at.is_leaf()) co_return Contended("the inner nodes of the tree change all the time");
  co_return Position{.node = at, .parent = parent};
}

}  // namespace farside::index::chime
