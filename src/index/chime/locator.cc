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

// INVARIANT chime/6: a sibling has the keys from the fence of the node before it on, so its own fence is
// beyond that one, whatever was split or merged meanwhile. If it is not, the siblings may lead in circles.
// Long fences that begin alike are not compared further.
bool EndsBeyondPassed(const Header& header, const Position& position) {
  if (header.fence_prefix != position.passed_prefix) return header.fence_prefix > position.passed_prefix;
  return BoundRef(header.fence_ref) != position.passed_ref;
}
bool EndsBeyond(const Inner& node, const Bound& passed) {
  return node.fence().infinite || node.fence().text > passed.text;
}

}  // namespace

bool Locator::FindCached(const Key& key, uint32_t level, Position& position) const {
  const NodePtr root = root_.node();
  if (root.null() || root.level() < level) return false;
  position = {.node = root};
  while (position.node.level() > level) {
    const Inner* const node = inner_nodes_.Cached(position.node);
    if (node == nullptr || !node->Has(key)) return false;
    const size_t child = node->IndexOf(key);
    position.parent = position.node;
    position.node = node->child(child);
    position.count = node->CountOf(child);
  }
  return true;
}

// First with the cache. If that leads to a node that does not have the key, once more, READing every node.
Task<Position> Locator::Find(Op& op, Key key, uint32_t level) {
  bool fresh = root_.node().null();
  for (size_t steps = 0; steps < kMostSteps; ++steps) {
    if (fresh) co_await root_.Read(op);
    Position position{.node = root_.node()};
    Bound passed;  // the fence of the node whose sibling this one is
    bool stale = false;
    while (position.node.level() > level && !stale) {
      if (++steps > kMostSteps) co_return Damaged(position.node, "leads nowhere");
      std::shared_ptr<const Inner> node;
      if (fresh) {
        node = co_await inner_nodes_.Load(op, position.node);
      } else {
        node = co_await inner_nodes_.Get(op, position.node);
      }
      stale = node->dead() && !fresh;
      if (stale) continue;
      // INVARIANT chime/12: the parent was just READ, and names a dead node. Another client is about to
      // unlink it, or has died before it had; meanwhile the node leads on.
      if (node->dead() && passed == Bound()) co_await FinishMerge(op, position.parent);
      if (node->Has(key)) {
        position.parent = position.node;
        position.node = node->ChildOf(key);
        passed = Bound();
        continue;
      }
      stale = !fresh;
      if (stale) continue;
      if (!EndsBeyond(*node, passed)) co_return Damaged(node->at(), kInCircles);
      passed = node->fence();
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

Task<Done> Locator::FinishMerge(Op& op, NodePtr parent) {
  if (!parent.null() && !table_.pool.read_only()) co_await recovery_.TakeOverFromDead(op, parent);
  co_return Done{};
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
  if (!EndsBeyondPassed(header, position)) co_return Damaged(position.node, kInCircles);
  const Position next{.node = sibling,
                      .parent = position.parent,
                      .by_sibling = true,
                      .passed_prefix = header.fence_prefix,
                      .passed_ref = BoundRef(header.fence_ref)};
  if (!position.parent.null() && !position.by_sibling) {
    const std::shared_ptr<const Inner> parent = co_await inner_nodes_.Load(op, position.parent);
    if (parent->Has(key)) {
      const NodePtr child = parent->ChildOf(key);
      if (child != position.node) co_return Position{.node = child, .parent = position.parent};
      // INVARIANT chime/7: the parent was just READ, and does not name the sibling.
      MissingPivot missing{.level = 1, .bound = {}, .ref = BoundRef(header.fence_ref), .child = sibling};
      // The header may have been READ before the texts were last forgotten.
      missing.bound = co_await bounds_.FenceOf(op, header, BoundTexts::kForgotten);
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
  if (position.heirs.Closes(position.node)) co_return Damaged(position.node, kInCircles);
  if (!position.parent.null() && !position.by_sibling) {
    const std::shared_ptr<const Inner> parent = co_await inner_nodes_.Load(op, position.parent);
    if (parent->Find(position.node) < parent->size()) co_await FinishMerge(op, position.parent);
  }
  co_return Position{.node = heir, .parent = position.parent, .by_sibling = true, .heirs = position.heirs};
}

}  // namespace farside::index::chime
