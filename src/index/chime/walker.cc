#include "index/chime/walker.h"

#include <memory>
#include <vector>

#include "index/chime/circle.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/beats.h"

namespace farside::index::chime {

using fabric::Op;

Task<Done> Walker::Walk(Op& op, pool::Reach& reach) {
  reach.Mark(table_.root_block, sizeof(RootBlock));
  std::set<uint64_t> dead;
  co_await MarkInnerNodes(op, reach, dead);
  co_await MarkLeaves(op, reach, dead);
  // After their level: a child that is alive now was among the nodes there, or is new.
  for (uint32_t level = 1; level <= root_.node().level(); ++level)
    co_await MarkDeadChildren(op, reach, level, dead);
  // INVARIANT chime/8: the sweep may free leaves that were unlinked by a client that died before step 4 of
  // its merge.
  if (!table_.pool.read_only() && !Mutant(kSweptUnannounced)) co_await root_.RaiseMerges(op);
  co_return Done{};
}

Task<Done> Walker::MarkInnerNodes(Op& op, pool::Reach& reach, std::set<uint64_t>& dead) {
  pool::Beats beats(table_.pool);
  co_await root_.Read(op);
  for (uint32_t level = root_.node().level(); level > 0; --level) {
    Circle circle;
    NodePtr at = co_await locator_.Leftmost(op, level);
    while (!at.null()) {
      if (circle.Closes(at)) co_return Damaged(at, kInCircles);
      reach.Mark(table_.At(at), table_.shape().inner_bytes());
      const std::shared_ptr<const Inner> node = co_await inner_nodes_.Load(op, at);
      if (node->dead()) dead.insert(at.word());
      at = node->sibling();
      if (beats.Due()) co_await beats.Beat(op);
    }
  }
  co_return Done{};
}

// A separator of more than 8 bytes is the fence of one leaf, and is marked with that leaf.
Task<Done> Walker::MarkLeaves(Op& op, pool::Reach& reach, std::set<uint64_t>& dead) {
  pool::Beats beats(table_.pool);
  Circle circle;
  NodePtr at = co_await locator_.Leftmost(op, 0);
  while (!at.null()) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    Leaf leaf;
    co_await leaves_.Read(op, at, leaf, LockWait::kLong);
    reach.Mark(table_.At(at), table_.shape().leaf_bytes());
    if (leaf.dead()) dead.insert(at.word());
    co_await MarkBound(op, reach, BoundRef(leaf.header.fence_ref));
    co_await MarkRecords(op, reach, leaf);
    at = NodePtr(leaf.header.sibling);
    if (beats.Due()) co_await beats.Beat(op);
  }
  co_return Done{};
}

Task<Done> Walker::MarkRecords(Op& op, pool::Reach& reach, const Leaf& leaf) {
  const Shape& shape = table_.shape();
  if (shape.inline_keys) {
    reach.CountRecords(leaf.Count(shape));
    co_return Done{};
  }
  for (size_t slot = 0; slot < shape.span; ++slot) {
    const Entry entry = leaf.Get(shape, slot);
    if (!entry.used) continue;
    const BlockRef block(entry.value);
    const uint64_t bytes = co_await table_.SizeOf(op, block);
    reach.MarkBlock(table_.At(block), bytes, 0);
  }
  co_return Done{};
}

Task<Done> Walker::MarkBound(Op& op, pool::Reach& reach, BoundRef bound) {
  if (!bound.in_block()) co_return Done{};
  const uint64_t bytes = co_await table_.SizeOf(op, bound.block());
  reach.Mark(table_.At(bound.block()), bytes);
  co_return Done{};
}

// A client that died in the middle of a merge may have left a parent with a dead child that no sibling names:
// the client that clears the pivot retires the child, and the separator of a leaf.
Task<Done> Walker::MarkDeadChildren(Op& op, pool::Reach& reach, uint32_t level,
                                    const std::set<uint64_t>& marked) {
  pool::Beats beats(table_.pool);
  Circle circle;
  for (NodePtr at = co_await locator_.Leftmost(op, level); !at.null();) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    InnerImage image;
    const auto [header, lines] = inner_nodes_.ReadsOf(at, image);
    co_await op.InOrder(header, lines);
    std::vector<Pivot> pivots;
    for (size_t slot = 0; slot < table_.shape().fanout; ++slot) {
      const RawPivot raw = image.Get(table_.shape(), slot);
      if (!raw.child.null()) pivots.push_back({.bound = {}, .raw = raw, .slot = slot});
    }
    const std::vector<Header> headers = co_await leaves_.ReadHeaders(op, pivots);
    for (size_t i = 0; i < pivots.size(); ++i) {
      const RawPivot& raw = pivots[i].raw;
      if (headers[i].heir == 0 || marked.contains(raw.child.word())) continue;
      if (raw.child.is_leaf()) {
        reach.Mark(table_.At(raw.child), table_.shape().leaf_bytes());
        co_await MarkBound(op, reach, raw.ref);
      } else {
        reach.Mark(table_.At(raw.child), table_.shape().inner_bytes());
      }
    }
    at = NodePtr(image.header.sibling);
    if (beats.Due()) co_await beats.Beat(op);
  }
  co_return Done{};
}

}  // namespace farside::index::chime
