// Keys in order: leaves are read whole, several at once, and taken if nobody has moved entries meanwhile.
//
// What a scan says of a key was true when its slot was sampled, or, if it says that it is absent, at some moment between the
// two READs of the leaf's header (chime/4). A leaf has the keys from the fence of the one before it; so if the sibling that a
// leaf names is the one that is taken next, no key is left out, and none comes twice.
#include <algorithm>

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
using fabric::Order;
using fabric::Read;

namespace {

constexpr int kTornUntilLock = 4;
constexpr int kMostAttempts = 1000;
// Three READs for each, and a trip has 16 at most.
constexpr size_t kLeavesAtOnce = 5;
constexpr size_t kBlocksAtOnce = 64;
// A leaf has at least so large a part of its span, on average.
constexpr size_t kFewestPartOfSpan = 2;

bool IsAtRest(const Header& before, const Header& after) {
  return before.moves == after.moves && after.moves % 2 == 0;
}

}  // namespace

// [READ header, READ lines, READ header] of each, in one trip; all are on one node.
Task<Done> Table::ReadLeavesOfNode(Op& op, std::span<const NodePtr> at, std::span<Leaf> leaves,
                                   std::span<Header> again) {
  const bool ordered = op.client().orders_reads();
  for (int part = 0; part < (ordered ? 1 : 3); ++part) {
    fabric::Batch trip(op, Order::kInOrder);
    for (size_t i = 0; i < at.size(); ++i) {
      if (ordered || part == 0) trip.Add(Read(At(at[i]), leaves[i].header_bytes()));
      if (ordered || part == 1) trip.Add(Read(At(at[i]) + pool::kLine, leaves[i].lines(shape())));
      if (ordered || part == 2) trip.Add(Read(At(at[i]), std::as_writable_bytes(again.subspan(i, 1))));
    }
    co_await trip;
  }
  co_return Done{};
}

// Whether the header of a leaf can be one: fence and sibling stand in one line, so whoever reads one of them reads the other.
std::optional<Error> Table::DamageOf(NodePtr at, const Header& header) {
  if (NodeInfo(header.info) != NodeInfo::Of(0)) return Damaged(at, "is not a leaf");
  if (BoundRef(header.fence_ref).infinite() != NodePtr(header.sibling).null())
    return Damaged(at, "ends in the wrong place");
  return std::nullopt;
}

Task<Done> Table::ReadLeaves(Op& op, std::span<const NodePtr> at, std::vector<Leaf>& leaves,
                             std::vector<bool>& ok) {
  leaves.resize(at.size());
  ok.assign(at.size(), false);
  std::vector<Header> again(at.size());
  // Runs of leaves that are on one node.
  for (size_t begin = 0; begin < at.size();) {
    size_t end = begin + 1;
    while (end < at.size() && at[end].node() == at[begin].node()) ++end;
    co_await ReadLeavesOfNode(op, at.subspan(begin, end - begin),
                              std::span(leaves).subspan(begin, end - begin),
                              std::span(again).subspan(begin, end - begin));
    begin = end;
  }
  for (size_t i = 0; i < at.size(); ++i) {
    const std::optional<Error> damage = DamageOf(at[i], again[i]);
    if (damage.has_value()) co_return *damage;
    ok[i] = IsAtRest(leaves[i].header, again[i]) || Mutant(kScanReadsOnce);
    leaves[i].header = again[i];
  }
  co_return Done{};
}

Task<Done> Table::ReadLeaf(Op& op, NodePtr at, Leaf& leaf, Waits waits) {
  if (at.null() || !at.is_leaf() || !IsOnNodes(at.word(), nodes_)) co_return Damaged(at, "should be a leaf");
  for (int attempt = 1; attempt < kMostAttempts; ++attempt) {
    Header again;
    co_await ReadLeavesOfNode(op, std::span(&at, 1), std::span(&leaf, 1), std::span(&again, 1));
    const std::optional<Error> damage = DamageOf(at, again);
    if (damage.has_value()) co_return *damage;
    const bool at_rest = IsAtRest(leaf.header, again);
    leaf.header = again;
    if (at_rest) co_return Done{};
    op.CountRetry();
    if (attempt % kTornUntilLock != 0) continue;
    if (pool_.read_only()) {
      co_await op.Pause(options_.backoff * attempt);
    } else {
      co_await AwaitUnlocked(op, at, waits);
    }
  }
  co_return Contended("a leaf of the tree was never at rest");
}

// As far as the parent that led here knows.
std::vector<NodePtr> Table::LeavesAhead(const PathNode& at_node, size_t records) {
  std::vector<NodePtr> ahead = {at_node.node};
  const std::shared_ptr<const Inner> parent = cache_.Share(at_node.parent);
  if (parent == nullptr) return ahead;
  const size_t wanted =
      std::min(kLeavesAtOnce, 1 + records * kFewestPartOfSpan / std::max<size_t>(shape().span, 1));
  size_t i = parent->Find(at_node.node);
  for (++i; i < parent->size() && ahead.size() < wanted; ++i) ahead.push_back(parent->child(i));
  // And on to the next parent, if there is one.
  const std::shared_ptr<const Inner> next = cache_.Share(parent->sibling());
  for (i = 0; next != nullptr && i < next->size() && ahead.size() < wanted; ++i)
    ahead.push_back(next->child(i));
  return ahead;
}

// Which inner node leads to a leaf that follows those of `parent`. A guess: whether the leaves that it names are those that
// follow is seen when they are read.
Task<NodePtr> Table::ParentOfNext(Op& op, NodePtr parent, NodePtr next) {
  if (parent.null()) co_return parent;
  std::shared_ptr<const Inner> node = co_await KnowInner(op, parent);
  if (node->Find(next) < node->size()) co_return parent;
  if (!node->sibling().null()) {
    const std::shared_ptr<const Inner> sibling = co_await KnowInner(op, node->sibling());
    if (sibling->Find(next) < sibling->size()) co_return sibling->at();
  }
  node = co_await LoadInner(op, parent);
  const bool here = node->Find(next) < node->size() || node->sibling().null();
  co_return here ? parent : node->sibling();
}

// In the order of their prefixes, without those that cannot be in the range.
void Table::Collect(const Leaf& leaf, const KeyRange& range, std::vector<Item>& items) const {
  const uint64_t from = PrefixOf(range.from);
  const size_t first = items.size();
  for (size_t slot = 0; slot < shape().span; ++slot) {
    Entry entry = leaf.Get(shape(), slot);
    if (Mutant(kHalfIgnored)) entry.key &= ~kMiddle;
    if (!entry.used || entry.key < from) continue;
    if (range.to.has_value() && entry.key > PrefixOf(*range.to)) continue;
    items.push_back({.prefix = entry.key, .value = entry.value});
  }
  std::sort(items.begin() + static_cast<std::ptrdiff_t>(first), items.end(),
            [](const Item& a, const Item& b) { return a.prefix < b.prefix; });
}

// In the order of the items.
Task<std::vector<Record>> Table::ReadItems(Op& op, std::span<const Item> items) {
  std::vector<Record> records(items.size());
  if (shape().inline_keys) {
    for (size_t i = 0; i < items.size(); ++i) {
      std::array<std::byte, 8> value;
      StoreU64(value.data(), items[i].value);
      records[i].key = TextOf(items[i].prefix, kPrefixBytes);
      records[i].value = AsText(value);
    }
    co_return std::move(records);
  }
  std::vector<BlockBuffer> buffers(std::min(items.size(), kBlocksAtOnce));
  for (size_t begin = 0; begin < items.size(); begin += kBlocksAtOnce) {
    const size_t count = std::min(kBlocksAtOnce, items.size() - begin);
    fabric::Batch trip(op, Order::kTogether);
    for (size_t i = 0; i < count; ++i) {
      const BlockRef block(items[begin + i].value);
      const FarAddr at = AddressOf(block.word(), nodes_);
      if (block.bytes() != 0) trip.Add(ForBlock(Read(at, buffers[i].Resize(block.bytes()))));
    }
    co_await trip;
    for (size_t i = 0; i < count; ++i) {
      const BlockRef block(items[begin + i].value);
      if (block.bytes() == 0) co_await ReadBlock(op, block, buffers[i]);
      const Result<pool::BlockView> view = pool::DecodeBlock(buffers[i].bytes());
      if (!view.ok()) co_return view.error();
      records[begin + i].key = view->key;
      records[begin + i].value = view->value;
    }
  }
  co_return std::move(records);
}

// Of inline keys the prefix is all, so the items are in order already.
bool Table::AppendInline(const KeyRange& range, std::span<const Item> items, size_t limit,
                         std::vector<Record>& page) const {
  size_t appended = 0;
  page.reserve(page.size() + std::min(limit, items.size()));
  for (const Item& item : items) {
    std::string key = TextOf(item.prefix, kPrefixBytes);
    if (!range.Has(key)) continue;
    if (appended++ == limit) return true;
    std::array<std::byte, 8> value;
    StoreU64(value.data(), item.value);
    page.push_back({std::move(key), std::string(AsText(value))});
  }
  return false;
}

Task<bool> Table::AppendItems(Op& op, const KeyRange& range, std::vector<Item> items, size_t limit,
                              std::vector<Record>& page) {
  if (shape().inline_keys) co_return AppendInline(range, items, limit, page);
  size_t appended = 0;
  for (size_t begin = 0; begin < items.size();) {
    if (appended == limit) co_return true;
    // All those of the last prefix, or they would not be in order.
    size_t end = std::min(items.size(), begin + (limit - appended));
    while (end < items.size() && items[end].prefix == items[end - 1].prefix) ++end;
    std::vector<Record> records = co_await ReadItems(op, std::span(items).subspan(begin, end - begin));
    std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) { return a.key < b.key; });
    for (Record& record : records) {
      if (!range.Has(record.key)) continue;
      if (appended == limit) co_return true;
      page.push_back(std::move(record));
      ++appended;
    }
    begin = end;
  }
  co_return false;
}

// Who had to wait goes on behind the last record that it has.
Task<bool> Table::Scan(Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) {
  const uint64_t catalogs = pool_.known_catalog_changes();
  const size_t before = page.size();
  Result<bool> more = co_await ScanPinned(op, range, limit, page).Outcome();
  if (!more.ok()) {
    KeyRange rest = range;
    const auto again = [&] {
      if (page.size() > before) rest.from = page.back().key + '\0';
      return ScanPinned(op, rest, limit - (page.size() - before), page);
    };
    more = co_await WithRetries<bool>(op, RetryPolicySince(catalogs), more.error(), again).Outcome();
  }
  if (!more.ok()) co_return more.error();
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return *more;
}

Task<bool> Table::ScanPinned(Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  if (!IsFresh(pin)) co_await Refresh(op, pin);
  const Key from(range.from);
  const size_t before = page.size();
  bool more = !range.to.has_value() || *range.to > range.from;
  bool done = !more;
  PathNode at_node;
  if (!done) at_node = co_await Find(op, from, 0);
  int attempts = 0;
  // Until it has come to the leaf that has `from`. From there on it goes along the siblings, and a dead one is as good as any
  // other that is empty: when the one before it was read, nobody else had its keys (chime/9).
  bool arrived = false;
  NodePtr dead;  // that it was led to
  Circle circle;
  while (!done) {
    if (arrived && circle.Closes(at_node.node)) co_return Damaged(at_node.node, kInCircles);
    const size_t wanted = limit - (page.size() - before);
    const std::vector<NodePtr> ahead = LeavesAhead(at_node, wanted);
    std::vector<Leaf> leaves;
    std::vector<bool> ok;
    co_await ReadLeaves(op, ahead, leaves, ok);
    if (!ok[0]) {
      op.CountRetry();
      co_await ReadLeaf(op, ahead[0], leaves[0]);
    }
    if (!arrived && leaves[0].dead() && attempts++ < kMostAttempts && !Mutant(kHeirIgnored)) {
      dead = at_node.node;
      at_node = co_await GoToHeir(op, at_node, leaves[0].header);
      continue;
    }
    const bool below = co_await IsBelowFence(op, from, leaves[0].header);
    if (!below && !dead.null() && NodePtr(leaves[0].header.sibling) == dead) {
      arrived = true;
      at_node.node = dead;
      continue;
    }
    if (!below && attempts++ < kMostAttempts) {
      at_node = co_await GoRight(op, from, at_node, leaves[0].header);
      continue;
    }
    arrived = true;
    std::vector<Item> items;
    items.reserve(ahead.size() * shape().span);
    NodePtr next = ahead[0];
    for (size_t i = 0; i < ahead.size() && !done && items.size() <= wanted; ++i) {
      const bool follows = ahead[i] == next || Mutant(kScanTrustsCache);
      if (!follows || (i > 0 && !ok[i])) break;
      Collect(leaves[i], range, items);
      const Header& header = leaves[i].header;
      const Bound fence = co_await Resolve(op, header.fence_prefix, BoundRef(header.fence_ref));
      // All that is left is beyond the range.
      done = fence.infinite || (range.to.has_value() && fence.text >= *range.to);
      next = NodePtr(header.sibling);
      if (!done && (next.null() || !next.is_leaf()))
        co_return Damaged(ahead[i], "has a fence and no sibling");
    }
    const bool left = co_await AppendItems(op, range, std::move(items), wanted, page);
    more = left || !done;
    done |= page.size() - before == limit;
    // From here on the parent is not asked: it leads to where `from` belongs.
    if (!done) {
      at_node.parent = co_await ParentOfNext(op, at_node.parent, next);
      at_node.node = next;
      at_node.by_sibling = true;
    }
  }
  co_return more;
}

// The leaf that has the keys right below a bound, as far as this client remembers, or one to the left of it; and what its own
// keys are not below.
Task<Table::PathNode> Table::FindBelow(Op& op, const Bound& upper, Bound& low) {
  if (root_.null()) co_await ReadRoot(op);
  NodePtr at = root_;
  NodePtr parent;
  low = Bound();
  const auto ends_below = [&](const Bound& fence) {
    return !fence.infinite && (upper.infinite || fence.text < upper.text);
  };
  for (int step = 0; step < kMostAttempts && !at.is_leaf(); ++step) {
    const std::shared_ptr<const Inner> node = co_await KnowInner(op, at);
    if (ends_below(node->fence())) {
      at = node->sibling();
      continue;
    }
    const size_t child = node->IndexBelow(upper);
    low = node->LowerBound(child);
    parent = at;
    at = node->child(child);
  }
  if (!at.is_leaf()) co_return Contended("the inner nodes of the tree change all the time");
  co_return PathNode{.node = at, .parent = parent};
}

Task<bool> Table::Last(Op& op, const KeyRange& range, Record& record) {
  const uint64_t catalogs = pool_.known_catalog_changes();
  Result<bool> found = co_await LastPinned(op, range, record).Outcome();
  if (!found.ok()) {
    const auto again = [&] { return LastPinned(op, range, record); };
    found = co_await WithRetries<bool>(op, RetryPolicySince(catalogs), found.error(), again).Outcome();
  }
  if (!found.ok()) co_return found.error();
  op.End(OpKind::kScan, *found ? OpOutcome::kDone : OpOutcome::kRefused);
  co_return *found;
}

Task<bool> Table::LastPinned(Op& op, const KeyRange& range, Record& record) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  if (!IsFresh(pin)) co_await Refresh(op, pin);
  Bound upper = range.to.has_value() ? Bound::Of(*range.to) : Bound::Beyond();
  bool found = false;
  // From leaf to leaf, to the left: those that are empty, or have nothing in the range.
  while (!found && (upper.infinite || upper.text > range.from)) {
    Bound low;
    PathNode at_node = co_await FindBelow(op, upper, low);
    Leaf leaf;
    co_await ReadLeaf(op, at_node.node, leaf);
    // What the parent led to may be dead; what comes along the siblings is as good as empty if it is (chime/9).
    for (int attempt = 0; leaf.dead() && attempt < kMostAttempts && !Mutant(kHeirIgnored); ++attempt) {
      at_node = co_await GoToHeir(op, at_node, leaf.header);
      co_await ReadLeaf(op, at_node.node, leaf);
    }
    Bound fence = co_await Resolve(op, leaf.header.fence_prefix, BoundRef(leaf.header.fence_ref));
    Circle circle;
    while (!fence.infinite && (upper.infinite || fence.text < upper.text)) {
      low = fence;
      const NodePtr next(leaf.header.sibling);
      if (circle.Closes(next)) co_return Damaged(next, kInCircles);
      co_await ReadLeaf(op, next, leaf);
      fence = co_await Resolve(op, leaf.header.fence_prefix, BoundRef(leaf.header.fence_ref));
    }
    std::vector<Item> items;
    Collect(leaf, range, items);
    std::vector<Record> records = co_await ReadItems(op, items);
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

}  // namespace farside::index::chime
