// Finding the node that a key belongs to, level by level: by what the client remembers, or anew.
#include <algorithm>

#include "index/chime/chime.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::Op;
using fabric::Read;

namespace {

constexpr int kMostReads = 64;
// Siblings that one search may follow on a level: far more than splits that nobody has told the parent of.
constexpr size_t kMostSteps = size_t{1} << 20;
// Of what inner nodes may take, for separators that are longer than 8 bytes.
constexpr uint64_t kPartForLongBounds = 8;

}  // namespace

// INVARIANT chime/8: an operation looks at the root block before it uses what was remembered under an older epoch than that
// of its pin. Of leaves that were retired before that epoch, `merges` tells.
Task<Done> Table::Refresh(Op& op, const pool::PoolClient::Pin& pin) {
  const uint64_t epochs = EpochsOf(pin);
  co_await ReadRoot(op);
  checked_ = std::max(checked_, epochs);
  co_return Done{};
}

// READs that are under way do not count as remembered either: they may show what is to be forgotten.
void Table::Forget() {
  if (Mutant(kFreedRemembered)) return;
  ++memory_;
  cache_.Clear();
  if (!Mutant(kHotspotsKept)) hotspots_.Clear();
  long_bounds_.clear();
  long_bound_bytes_ = 0;
}

std::optional<Table::PathNode> Table::Known(const Key& key, uint32_t level) {
  if (root_.null() || root_.level() < level) return std::nullopt;
  PathNode at_node{.node = root_, .parent = {}};
  while (at_node.node.level() > level) {
    const Inner* const node = cache_.Find(at_node.node);
    if (node == nullptr || !node->Has(key)) return std::nullopt;
    at_node.parent = at_node.node;
    at_node.node = node->ChildOf(key);
  }
  return at_node;
}

// At first with what is remembered. If that leads to a node that no longer has the key, once more, reading everything.
Task<Table::PathNode> Table::Find(Op& op, Key key, uint32_t level) {
  bool fresh = root_.null();
  for (size_t steps = 0; steps < kMostSteps; ++steps) {
    if (fresh) co_await ReadRoot(op);
    PathNode at_node{.node = root_, .parent = {}};
    bool stale = false;
    while (at_node.node.level() > level && !stale) {
      if (++steps > kMostSteps) co_return Damaged(at_node.node, "leads nowhere");
      std::shared_ptr<const Inner> node;
      if (fresh) {
        node = co_await LoadInner(op, at_node.node);
      } else {
        node = co_await KnowInner(op, at_node.node);
      }
      if (node->Has(key)) {
        at_node.parent = at_node.node;
        at_node.node = node->ChildOf(key);
        continue;
      }
      stale = !fresh;
      if (stale) continue;
      // INVARIANT chime/7: the parent was just read.
      const uint32_t above = node->at().level() + 1;
      if (node->sibling().null()) co_return Damaged(node->at(), "has a fence and no sibling");
      co_await Repair(op, above, node->fence(), node->fence_ref(), node->sibling());
      at_node.node = node->sibling();
    }
    if (at_node.node.level() < level) {
      if (fresh) co_return PathNode();
      stale = true;  // the root that is remembered is too low
    }
    if (!stale) co_return at_node;
    fresh = true;
  }
  co_return Damaged(root_, "leads nowhere");
}

// Somebody has split the leaf. Usually the parent knows already.
Task<Table::PathNode> Table::GoRight(Op& op, Key key, PathNode at_node, Header header) {
  const NodePtr sibling(header.sibling);
  if (sibling.null() || !sibling.is_leaf()) co_return Damaged(at_node.node, "has a fence and no sibling");
  const PathNode next{.node = sibling, .parent = at_node.parent, .by_sibling = true};
  if (!at_node.parent.null() && !at_node.by_sibling) {
    const std::shared_ptr<const Inner> parent = co_await LoadInner(op, at_node.parent);
    if (parent->Has(key)) {
      const NodePtr child = parent->ChildOf(key);
      if (child != at_node.node) co_return PathNode{.node = child, .parent = at_node.parent};
      // INVARIANT chime/7
      const Bound fence = co_await Resolve(op, header.fence_prefix, BoundRef(header.fence_ref));
      co_await Repair(op, 1, fence, BoundRef(header.fence_ref), sibling);
      co_return next;
    }
  }
  // What the parent does not know of, although it was told, has no better way than along the siblings.
  if (at_node.by_sibling) co_return next;
  const PathNode found = co_await Find(op, key, 0);
  if (found.node != at_node.node) co_return found;
  co_return next;
}

Task<Done> Table::ReadRoot(Op& op) {
  const auto block = co_await op.InOrder(Read<RootBlock>(root_block_));
  const NodePtr root(block.root);
  if (root.null() || root.is_leaf() || root.level() > kMostLevels || !IsOnNodes(block.root, nodes_))
    co_return Damaged(root, "is named as the root of the tree, and is none");
  root_ = root;
  // Looks may end in another order than they began.
  if (block.merges > merges_) {
    merges_ = block.merges;
    Forget();
  }
  co_return Done{};
}

Task<std::shared_ptr<const Inner>> Table::KnowInner(Op& op, NodePtr at) {
  std::shared_ptr<const Inner> known = cache_.Share(at);
  if (known == nullptr) known = co_await LoadInner(op, at);
  co_return known;
}

// The header is read once more behind the lines. Who splits a node clears what has left before it writes the fence, so some
// pivots may be missing even if the fence is still the same: then the way is along the siblings.
Task<std::shared_ptr<const Inner>> Table::LoadInner(Op& op, NodePtr at) {
  if (at.null() || at.is_leaf()) co_return Damaged(at, "should be an inner node");
  for (int attempt = 0; attempt < kMostReads; ++attempt) {
    InnerImage image;
    image.memory = memory_;
    Header again;
    const auto header = Read(At(at), std::as_writable_bytes(std::span(&image.header, 1)));
    const auto lines = Read(At(at) + pool::kLine, image.lines(shape()));
    const auto header_again = Read(At(at), std::as_writable_bytes(std::span(&again, 1)));
    if (op.client().orders_reads()) {
      co_await op.InOrder(header, lines, header_again);
    } else {
      co_await op.Together(header, lines);
      co_await op.InOrder(header_again);
    }
    if (image.header.sibling != again.sibling) {
      op.CountRetry();
      continue;
    }
    Bound fence;
    const std::vector<Pivot> pivots = co_await Decode(op, at, image, fence);
    co_return Remember(at, image, fence, pivots);
  }
  co_return Contended("an inner node of the tree was split again and again");
}

std::shared_ptr<const Inner> Table::Remember(NodePtr at, const InnerImage& image, const Bound& fence,
                                             std::span<const Pivot> pivots) {
  std::shared_ptr<const Inner> node = Inner::Make(shape(), at, fence, image.header, pivots);
  if (image.memory == memory_ || Mutant(kOldReadRemembered)) cache_.Put(node);
  return node;
}

Task<std::vector<Pivot>> Table::Decode(Op& op, NodePtr at, const InnerImage& image, Bound& fence) {
  if (NodeInfo(image.header.info) != NodeInfo::Of(at.level()))
    co_return Damaged(at, "is not what it should be");
  fence = co_await Resolve(op, image.header.fence_prefix, BoundRef(image.header.fence_ref));
  std::vector<Pivot> pivots;
  for (size_t slot = 0; slot < shape().fanout; ++slot) {
    const RawPivot raw = image.Get(shape(), slot);
    if (raw.child.null()) continue;
    if (raw.child.level() + 1 != at.level() || !IsOnNodes(raw.child.word(), nodes_))
      co_return Damaged(at, "has a child that is none");
    Pivot pivot{.bound = {}, .raw = raw, .slot = slot};
    pivot.bound = co_await Resolve(op, raw.prefix, raw.ref);
    // INVARIANT chime/7
    if (!IsBelow(Key(pivot.bound.text), fence)) continue;
    pivots.push_back(std::move(pivot));
  }
  if (pivots.empty()) co_return Damaged(at, "has no children");
  std::sort(pivots.begin(), pivots.end(), [](const Pivot& a, const Pivot& b) {
    return a.raw.prefix != b.raw.prefix ? a.raw.prefix < b.raw.prefix : a.bound.text < b.bound.text;
  });
  co_return std::move(pivots);
}

std::optional<Bound> Table::Resolved(uint64_t prefix, BoundRef ref) const {
  if (ref.infinite()) return Bound::Beyond();
  if (!ref.in_block()) return Bound{.prefix = prefix, .text = TextOf(prefix, ref.length())};
  const auto known = long_bounds_.find(ref.word());
  if (known == long_bounds_.end()) return std::nullopt;
  return Bound{.prefix = prefix, .text = known->second};
}

Task<Bound> Table::Resolve(Op& op, uint64_t prefix, BoundRef ref) {
  std::optional<Bound> known = Resolved(prefix, ref);
  if (known.has_value()) co_return std::move(*known);
  BlockBuffer buffer;
  const uint64_t memory = memory_;
  co_await ReadBlock(op, ref.block(), buffer);
  const Result<pool::BlockView> view = pool::DecodeBlock(buffer.bytes());
  if (!view.ok()) co_return view.error();
  if (memory != memory_) co_return Bound::Of(view->key);
  const uint64_t cost = view->key.size() + sizeof(std::string) + 4 * sizeof(uint64_t);
  if (long_bound_bytes_ + cost > options_.cache_bytes / kPartForLongBounds) {
    long_bounds_.clear();
    long_bound_bytes_ = 0;
  }
  if (cost <= options_.cache_bytes / kPartForLongBounds && long_bounds_.emplace(ref.word(), view->key).second)
    long_bound_bytes_ += cost;
  co_return Bound::Of(view->key);
}

}  // namespace farside::index::chime
