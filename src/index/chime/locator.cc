#include "index/chime/locator.h"

#include <memory>

#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "index/chime/pivot_inserts.h"

namespace farside::index::chime {

using fabric::Op;

namespace {

// Nodes that one search may visit: far more than splits whose pivot is missing.
constexpr size_t kMostSteps = size_t{1} << 20;

}  // namespace

bool Locator::FindCached(const Key& key, uint32_t level, Position& position) const {
  const NodePtr root = root_.node();
  if (root.null() || root.level() < level) return false;
  position = {.node = root};
  while (position.node.level() > level) {
    const Inner* const node = inner_nodes_.Cached(position.node);
    if (node == nullptr || !node->Has(key)) return false;
    position.parent = position.node;
    position.node = node->ChildOf(key);
  }
  return true;
}

// First with the cache. If that leads to a node that does not have the key, once more, READing every node.
Task<Position> Locator::Find(Op& op, Key key, uint32_t level) {
  bool fresh = root_.node().null();
  for (size_t steps = 0; steps < kMostSteps; ++steps) {
    if (fresh) co_await root_.Read(op);
    Position position{.node = root_.node()};
    bool stale = false;
    while (position.node.level() > level && !stale) {
      if (++steps > kMostSteps) co_return Damaged(position.node, "leads nowhere");
      std::shared_ptr<const Inner> node;
      if (fresh) {
        node = co_await inner_nodes_.Load(op, position.node);
      } else {
        node = co_await inner_nodes_.Get(op, position.node);
      }
      if (node->Has(key)) {
        position.parent = position.node;
        position.node = node->ChildOf(key);
        continue;
      }
      stale = !fresh;
      if (stale) continue;
      // INVARIANT chime/7: the parent was just READ, and does not name the sibling.
      if (node->sibling().null()) co_return Damaged(node->at(), "has a fence and no sibling");
      MissingPivot missing{.level = node->at().level() + 1,
                           .bound = node->fence(),
                           .ref = node->fence_ref(),
                           .child = node->sibling()};
      co_await pivot_inserts_.InsertMissing(op, std::move(missing));
      position.node = node->sibling();
    }
    if (position.node.level() < level) {
      if (fresh) co_return Position();
      stale = true;  // the root that is remembered is too low
    }
    if (!stale) co_return position;
    fresh = true;
  }
  co_return Damaged(root_.node(), "leads nowhere");
}

Task<NodePtr> Locator::Leftmost(Op& op, uint32_t level) {
  co_await root_.Read(op);
  NodePtr at = root_.node();
  while (at.level() > level) {
    const std::shared_ptr<const Inner> node = co_await inner_nodes_.Get(op, at);
    at = node->child(0);
  }
  co_return at;
}

// The leaf was split. Usually its parent has the new pivot already.
Task<Position> Locator::GoRight(Op& op, Key key, Position position, Header header) {
  const NodePtr sibling(header.sibling);
  if (sibling.null() || !sibling.is_leaf()) co_return Damaged(position.node, "has a fence and no sibling");
  const Position next{.node = sibling, .parent = position.parent, .by_sibling = true};
  if (!position.parent.null() && !position.by_sibling) {
    const std::shared_ptr<const Inner> parent = co_await inner_nodes_.Load(op, position.parent);
    if (parent->Has(key)) {
      const NodePtr child = parent->ChildOf(key);
      if (child != position.node) co_return Position{.node = child, .parent = position.parent};
      // INVARIANT chime/7: the parent was just READ, and does not name the sibling.
      MissingPivot missing{.level = 1, .bound = {}, .ref = BoundRef(header.fence_ref), .child = sibling};
      missing.bound = co_await bounds_.FenceOf(op, header);
      co_await pivot_inserts_.InsertMissing(op, std::move(missing));
      co_return next;
    }
  }
  // A sibling led here already: the pivot could not be inserted, so the only way is along the siblings.
  if (position.by_sibling) co_return next;
  const Position found = co_await Find(op, key, 0);
  if (found.node != position.node) co_return found;
  co_return next;
}

// From the heir the way is along the siblings: the parent may still name the dead leaf. If it does, and the
// client that should have cleared the pivot is dead, this client does.
Task<Position> Locator::GoToHeir(Op& op, Position position, Header header) {
  const NodePtr heir(header.heir);
  if (!heir.is_leaf() || !table_.Has(heir)) co_return Damaged(position.node, "has no heir");
  if (!position.parent.null() && !position.by_sibling) {
    const std::shared_ptr<const Inner> parent = co_await inner_nodes_.Load(op, position.parent);
    const bool named = parent->Find(position.node) < parent->size();
    if (named && !table_.pool.read_only()) co_await recovery_.TakeOverFromDead(op, position.parent);
  }
  co_return Position{.node = heir, .parent = position.parent, .by_sibling = true};
}

}  // namespace farside::index::chime
