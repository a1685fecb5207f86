// Looking through the whole table: for the pool, for fsck, for cursors and for statistics.
//
// All of them go through a level from its first node along the siblings. Keys move to the right only (chime/6), so whatever
// is in the table throughout is met, in its old place or in its new one. A dead leaf that is met on the way is as good as one
// that is empty (chime/9).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/bytes.h"
#include "index/chime/chime.h"
#include "index/chime/circle.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Read;

// Splits leave the first node of a level the first.
Task<NodePtr> Table::Leftmost(Op& op, uint32_t level) {
  co_await ReadRoot(op);
  NodePtr at = root_;
  while (at.level() > level) {
    const std::shared_ptr<const Inner> node = co_await KnowInner(op, at);
    at = node->child(0);
  }
  co_return at;
}

Task<uint64_t> Table::BytesOf(Op& op, BlockRef block) {
  if (block.bytes() != 0) co_return block.bytes();
  std::array<std::byte, pool::kLine> line;
  co_await op.InOrder(ForBlock(Read(AddressOf(block.word(), nodes_), line)));
  const Result<uint64_t> size = pool::BlockBytesFromHeader(line);
  if (!size.ok()) co_return size.error();
  co_return *size;
}

// A separator that is longer than 8 bytes is the fence of one leaf, and marked with it. Who died in the middle of a merge may
// have left a parent with a child that is dead, and not among the leaves any more: whoever clears that pivot retires them.
Task<Done> Table::Walk(Op& op, pool::Reach& reach) {
  reach.Mark(root_block_, sizeof(RootBlock));
  co_await ReadRoot(op);
  for (uint32_t level = root_.level(); level > 0; --level) {
    Circle circle;
    NodePtr at = co_await Leftmost(op, level);
    while (!at.null()) {
      if (circle.Closes(at)) co_return Damaged(at, kInCircles);
      reach.Mark(At(at), shape().inner_bytes());
      const std::shared_ptr<const Inner> node = co_await LoadInner(op, at);
      at = node->sibling();
    }
  }
  std::set<uint64_t> dead;  // that are still among the leaves
  Circle circle;
  NodePtr at = co_await Leftmost(op, 0);
  while (!at.null()) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    Leaf leaf;
    co_await ReadLeaf(op, at, leaf, Waits::kLong);
    reach.Mark(At(at), shape().leaf_bytes());
    if (leaf.dead()) dead.insert(at.word());
    const BoundRef fence(leaf.header.fence_ref);
    if (fence.in_block()) {
      const uint64_t bytes = co_await BytesOf(op, fence.block());
      reach.Mark(AddressOf(fence.word(), nodes_), bytes);
    }
    if (shape().inline_keys) reach.CountRecords(leaf.Count(shape()));
    for (size_t slot = 0; slot < shape().span && !shape().inline_keys; ++slot) {
      const Entry entry = leaf.Get(shape(), slot);
      if (!entry.used) continue;
      const uint64_t bytes = co_await BytesOf(op, BlockRef(entry.value));
      reach.MarkBlock(AddressOf(entry.value, nodes_), bytes);
    }
    at = NodePtr(leaf.header.sibling);
  }
  // Behind the leaves: a child that is alive now was among them, or is new.
  co_await MarkDeadChildren(op, reach, dead);
  // INVARIANT chime/8: who sweeps may free leaves that somebody has unlinked and died over.
  if (!pool_.read_only() && !Mutant(kSweptUnannounced)) co_await RaiseMerges(op);
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Table::MarkDeadChildren(Op& op, pool::Reach& reach, const std::set<uint64_t>& marked) {
  Circle circle;
  for (NodePtr at = co_await Leftmost(op, 1); !at.null();) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    InnerImage image;
    co_await op.InOrder(Read(At(at), std::as_writable_bytes(std::span(&image.header, 1))),
                        Read(At(at) + pool::kLine, image.lines(shape())));
    std::vector<Pivot> pivots;
    for (size_t slot = 0; slot < shape().fanout; ++slot) {
      const RawPivot raw = image.Get(shape(), slot);
      if (!raw.child.null()) pivots.push_back({.bound = {}, .raw = raw, .slot = slot});
    }
    const std::vector<Header> headers = co_await ReadHeaders(op, pivots);
    for (size_t i = 0; i < pivots.size(); ++i) {
      const RawPivot& raw = pivots[i].raw;
      if (headers[i].heir == 0 || marked.contains(raw.child.word())) continue;
      reach.Mark(At(raw.child), shape().leaf_bytes());
      if (!raw.ref.in_block()) continue;
      const uint64_t bytes = co_await BytesOf(op, raw.ref.block());
      reach.Mark(AddressOf(raw.ref.word(), nodes_), bytes);
    }
    at = NodePtr(image.header.sibling);
  }
  co_return Done{};
}

// ---- cursors -------------------------------------------------------------------------------------------

namespace {

// position: a phase (0: at the beginning, 1: at a leaf, 2: at the end) and `merges`; the leaf; the prefix and the hash of the
// bound that it begins at.
constexpr uint64_t kPhases = 4;
constexpr uint64_t kAtLeaf = 1;
constexpr uint64_t kAtEnd = 2;
// From leaf to leaf, until the tree is damaged.
constexpr int kMostSteps = 1'000'000;

}  // namespace

// INVARIANT chime/8: the leaf was there when the cursor came to it, and `merges` was not less than what the cursor says. So for a
// client that knows of no later merge, it is still what it was. For others, it is whatever begins at the bound now; if that
// bound is gone, the first leaf with keys of its prefix, from which some records come once more.
Task<NodePtr> Table::LeafOf(Op& op, const Cursor& cursor) {
  const auto& [phase, word, prefix, hash] = cursor.position;
  const NodePtr known(word);
  if (phase / kPhases >= merges_ || Mutant(kCursorTrusts)) co_return known;
  std::string text = TextOf(prefix, kPrefixBytes);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  const Key key(text);
  PathNode at_node = co_await Find(op, key, 0);
  Leaf leaf;
  co_await ReadLeaf(op, at_node.node, leaf);
  NodePtr dead;
  int steps = 0;  // of which sound memory needs few
  for (bool arrived = false; !arrived;) {
    if (++steps > kMostSteps) co_return Damaged(at_node.node, kInCircles);
    if (leaf.dead() && at_node.node != dead) {
      dead = at_node.node;
      at_node = co_await GoToHeir(op, at_node, leaf.header);
    } else {
      const bool below = co_await IsBelowFence(op, key, leaf.header);
      // A dead one that its heir still names is as good as any other that is empty.
      arrived = below || leaf.dead();
      if (!arrived) at_node = co_await GoRight(op, key, at_node, leaf.header);
    }
    if (!arrived) co_await ReadLeaf(op, at_node.node, leaf);
  }
  const NodePtr first = at_node.node;
  NodePtr at = first;
  while (true) {
    if (++steps > kMostSteps) co_return Damaged(at, kInCircles);
    const Bound fence = co_await Resolve(op, leaf.header.fence_prefix, BoundRef(leaf.header.fence_ref));
    if (fence.infinite || fence.prefix > prefix) co_return first;
    const NodePtr next(leaf.header.sibling);
    if (fence.prefix == prefix && Hash64(fence.text) == hash) co_return next;
    at = next;
    co_await ReadLeaf(op, next, leaf);
  }
}

Task<bool> Table::Next(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const uint64_t catalogs = pool_.known_catalog_changes();
  Result<bool> more = co_await NextPinned(op, cursor, page).Outcome();
  if (!more.ok()) {
    const auto again = [&] { return NextPinned(op, cursor, page); };
    more = co_await WithRetries<bool>(op, RetryPolicySince(catalogs), more.error(), again).Outcome();
  }
  if (!more.ok()) co_return more.error();
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return *more;
}

Task<bool> Table::NextPinned(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  if (!IsFresh(pin)) co_await Refresh(op, pin);
  auto& [phase, word, prefix, hash] = cursor.position;
  const size_t before = page.size();
  // As it is before anything is read.
  const uint64_t merges = merges_;
  NodePtr at;
  if (phase % kPhases == 0) at = co_await Leftmost(op, 0);
  if (phase % kPhases == kAtLeaf) at = co_await LeafOf(op, cursor);
  Circle circle;
  while (phase % kPhases != kAtEnd && page.size() == before) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    Leaf leaf;
    co_await ReadLeaf(op, at, leaf);
    std::vector<Item> items;
    Collect(leaf, KeyRange::All(), items);
    std::vector<Record> records = co_await ReadItems(op, items);
    std::move(records.begin(), records.end(), std::back_inserter(page));
    const Bound fence = co_await Resolve(op, leaf.header.fence_prefix, BoundRef(leaf.header.fence_ref));
    // A dead leaf may end before the cursor: what led there did not know that it was split when it was alive.
    if (phase % kPhases == kAtLeaf && !leaf.dead() && !fence.infinite && fence.prefix < prefix)
      co_return Damaged(at, kInCircles);
    at = NodePtr(leaf.header.sibling);
    word = at.word();
    prefix = fence.prefix;
    hash = Hash64(fence.text);
    phase = kPhases * merges + (at.null() ? kAtEnd : kAtLeaf);
  }
  co_return page.size() > before;
}

Task<TableStats> Table::Stats(Op& op) {
  const uint64_t catalogs = pool_.known_catalog_changes();
  Result<TableStats> stats = co_await StatsPinned(op).Outcome();
  if (!stats.ok()) {
    const auto again = [&] { return StatsPinned(op); };
    stats = co_await WithRetries<TableStats>(op, RetryPolicySince(catalogs), stats.error(), again).Outcome();
  }
  if (!stats.ok()) co_return stats.error();
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return std::move(*stats);
}

Task<TableStats> Table::StatsPinned(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  if (!IsFresh(pin)) co_await Refresh(op, pin);
  TableStats stats;
  stats.index_bytes = sizeof(RootBlock);
  uint64_t inner_nodes = 0;
  uint64_t leaves = 0;
  co_await ReadRoot(op);
  const uint32_t height = root_.level() + 1;
  for (uint32_t level = root_.level(); level > 0; --level) {
    Circle circle;
    NodePtr at = co_await Leftmost(op, level);
    for (; !at.null(); ++inner_nodes) {
      if (circle.Closes(at)) co_return Damaged(at, kInCircles);
      const std::shared_ptr<const Inner> node = co_await LoadInner(op, at);
      at = node->sibling();
    }
  }
  Circle circle;
  NodePtr at = co_await Leftmost(op, 0);
  for (; !at.null(); ++leaves) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    Leaf leaf;
    co_await ReadLeaf(op, at, leaf);
    const BoundRef fence(leaf.header.fence_ref);
    if (fence.in_block()) {
      const uint64_t bytes = co_await BytesOf(op, fence.block());
      stats.index_bytes += bytes;
    }
    for (size_t slot = 0; slot < shape().span; ++slot) {
      const Entry entry = leaf.Get(shape(), slot);
      if (!entry.used) continue;
      ++stats.records;
      if (shape().inline_keys) continue;
      const uint64_t bytes = co_await BytesOf(op, BlockRef(entry.value));
      stats.block_bytes += bytes;
    }
    at = NodePtr(leaf.header.sibling);
  }
  stats.slots = leaves * shape().span;
  stats.index_bytes += inner_nodes * shape().inner_bytes() + leaves * shape().leaf_bytes();
  stats.client_bytes = cache_.bytes() + hotspots_.bytes() + long_bound_bytes_;
  stats.details = {
      {"leaves", static_cast<double>(leaves)},
      {"inner nodes", static_cast<double>(inner_nodes)},
      {"levels", static_cast<double>(height)},
      {"load", static_cast<double>(stats.records) / static_cast<double>(std::max<uint64_t>(stats.slots, 1))},
      {"cached nodes", static_cast<double>(cache_.size())},
      {"cache bytes", static_cast<double>(cache_.bytes())},
  };
  if (hotspots_.bytes() > 0) {
    const auto share = [](uint64_t part, uint64_t whole) {
      return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(whole, 1));
    };
    stats.details.emplace_back("hotspots", static_cast<double>(hotspots_.size()));
    stats.details.emplace_back("hotspot bytes", static_cast<double>(hotspots_.bytes()));
    stats.details.emplace_back("hotspot hit ratio", share(speculations_, searches_));
    stats.details.emplace_back("right speculations", share(hits_, speculations_));
  }
  co_return stats;
}

// ---- verifying ---------------------------------------------------------------------------------------

// INVARIANT chime/11: whether what is between these bounds is on both sides of the middle, as no leaf and no parent of leaves
// is with keys=inline.
bool Table::IsAcross(const Bound& low, const Bound& fence) const {
  return shape().inline_keys && low.prefix < kMiddle && (fence.infinite || fence.prefix > kMiddle);
}

// Level by level from the bottom: what a pivot says of its child is compared with what the level below has said.
Task<Done> Table::Verify(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  co_await Refresh(op, pin);
  // Whoever died in the middle of a merge is in the way: nobody else holds a lock.
  Circle of_parents;
  for (NodePtr at = co_await Leftmost(op, 1); !at.null();) {
    if (of_parents.Closes(at)) co_return Damaged(at, kInCircles);
    const auto header = co_await op.InOrder(Read<Header>(At(at)));
    if (header.lock != 0) co_await AwaitUnlocked(op, at, Waits::kLong);
    at = NodePtr(header.sibling);
  }
  std::map<uint64_t, std::string> lows;  // of the nodes of the level below: what their keys are not below
  Bound low;
  Circle of_leaves;
  for (NodePtr at = co_await Leftmost(op, 0); !at.null();) {
    if (of_leaves.Closes(at)) co_return Damaged(at, kInCircles);
    Leaf leaf;
    co_await ReadLeaf(op, at, leaf, Waits::kLong);
    if (leaf.header.lock != 0) {
      // Of somebody who is dead: nobody else is there.
      co_await AwaitUnlocked(op, at, Waits::kLong);
      co_await ReadLeaf(op, at, leaf, Waits::kLong);
    }
    const Bound fence = co_await Resolve(op, leaf.header.fence_prefix, BoundRef(leaf.header.fence_ref));
    co_await VerifyLeaf(op, at, leaf, low, fence);
    lows.emplace(at.word(), low.text);
    low = fence;
    const NodePtr next(leaf.header.sibling);
    if (fence.infinite != next.null()) co_return Damaged(at, "ends in the wrong place");
    at = next;
  }
  for (uint32_t level = 1; level <= root_.level(); ++level) {
    std::map<uint64_t, std::string> above;
    std::string bound;
    Circle circle;
    for (NodePtr at = co_await Leftmost(op, level); !at.null();) {
      if (circle.Closes(at)) co_return Damaged(at, kInCircles);
      const std::shared_ptr<const Inner> node = co_await LoadInner(op, at);
      for (size_t i = 0; i < node->size(); ++i) {
        const auto child = lows.find(node->child(i).word());
        if (child == lows.end()) co_return Damaged(at, "has a child that its level does not have");
        const Bound pivot = node->LowerBound(i);
        if (child->second != pivot.text) co_return Damaged(at, "has a pivot that is not its child's");
        if (i == 0 && pivot.text != bound)
          co_return Damaged(at, "does not begin where the one before it ends");
      }
      if (level == 1 && IsAcross(Bound::Of(bound), node->fence()))
        co_return Damaged(at, "has leaves of both halves of the tree");
      above.emplace(at.word(), bound);
      bound = node->fence().text;
      at = node->sibling();
      if (node->fence().infinite != at.null()) co_return Damaged(node->at(), "ends in the wrong place");
    }
    lows = std::move(above);
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Table::VerifyLeaf(Op& op, NodePtr at, const Leaf& leaf, const Bound& low, const Bound& fence) {
  if (leaf.dead()) co_return Damaged(at, "is dead, and named by the leaf before it");
  if (leaf.header.leaving != 0 || leaf.header.moves % 2 != 0)
    co_return Damaged(at, "is in the middle of a split that nobody does");
  if (!fence.infinite && fence.text <= low.text) co_return Damaged(at, "ends before it begins");
  if (IsAcross(low, fence)) co_return Damaged(at, "has keys of both halves of the tree");
  std::vector<Item> items;
  for (size_t slot = 0; slot < shape().span; ++slot) {
    const Entry entry = leaf.Get(shape(), slot);
    if (shape().inline_keys && !entry.used && !leaf.IsBlank(slot))
      co_return Damaged(at, "has bytes where no entry is");
    if (!entry.used) continue;
    items.push_back({.prefix = entry.key, .value = entry.value});
    const size_t home = HomeOf(shape(), entry);
    const size_t distance = slot >= home ? slot - home : slot + shape().span - home;
    if (distance >= shape().neighbourhood) co_return Damaged(at, "has an entry where nobody looks for it");
  }
  const std::vector<Record> records = co_await ReadItems(op, items);
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
        (shape().inline_keys || BlockRef(items[i].value).tag() == TagOf(Hash64(key.text)));
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
