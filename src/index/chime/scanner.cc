#include "index/chime/scanner.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "index/chime/circle.h"
#include "index/chime/errors.h"
#include "index/chime/key.h"
#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::Op;

namespace {

constexpr int kMostAttempts = 1000;
// Three READs for each, and a trip has 16 at most.
constexpr size_t kLeavesAtOnce = 5;
// On average at least one entry of so many slots is used.
constexpr size_t kSlotsPerEntry = 2;

}  // namespace

struct Scanner::Progress {
  Key from;
  uint64_t clears = 0;  // of the texts of bounds, before anything was READ
  Position position = {};
  // Whether the scan has come to the leaf that has `from`. From there on it follows siblings, and a dead leaf
  // counts as an empty one: when the leaf before it was READ, no leaf had the dead one's range (chime/9).
  bool arrived = false;
  int attempts = 0;
  NodePtr dead = {};       // the last dead leaf that the scan came to
  bool met_empty = false;  // the leaves that were taken last had no records: the next few are READ at once
  bool done = false;
  bool is_short = false;  // it wants no more leaves than one trip has
  NodePtr next = {};      // the sibling of the last leaf that was taken

  std::vector<NodePtr> ahead = {};
  std::vector<Leaf> leaves = {};
  std::vector<bool> at_rest = {};
};

size_t Scanner::LeavesFor(size_t records) const {
  const size_t slots = std::min(records, kLeavesAtOnce * kMostSpan) * kSlotsPerEntry;
  return 1 + slots / std::max<size_t>(table_.shape().span, 1);
}

Task<bool> Scanner::Try(Op& op, const KeyRange& range, size_t limit, std::vector<Record>& page) {
  const size_t before = page.size();
  bool more = !range.to.has_value() || *range.to > range.from;
  Progress scan{.from = Key(range.from), .clears = bounds_.clears()};
  scan.done = !more;
  scan.is_short = LeavesFor(limit) <= kLeavesAtOnce;
  if (!scan.done) scan.position = co_await Begin(op, scan);
  scan.met_empty = !empty_front_.null() && scan.position.node == empty_front_;
  Circle circle;
  while (!scan.done) {
    if (scan.arrived && circle.Closes(scan.position.node)) co_return Damaged(scan.position.node, kInCircles);
    const size_t wanted = limit - (page.size() - before);
    co_await ReadAhead(op, scan, wanted);
    const bool takes = co_await Arrive(op, scan);
    if (!takes) continue;
    std::vector<Item> items = co_await TakeLeaves(op, range, scan, wanted);
    if (!scan.position.by_sibling) NoteFront(scan, items);
    scan.met_empty = items.empty();
    const bool left = co_await records_.Append(op, range, std::move(items), wanted, page);
    more = left || !scan.done;
    scan.done |= page.size() - before == limit;
    // From here on the parent does not decide: it leads to where `from` belongs.
    if (!scan.done) {
      scan.position.parent = co_await ParentOfNext(op, scan);
      scan.position.node = scan.next;
      scan.position.by_sibling = true;
    }
  }
  co_return more;
}

// The first leaf of all stays the first, and a scan from there needs no inner nodes, unless it is long.
Task<Position> Scanner::Begin(Op& op, const Progress& scan) {
  Position position;
  if (locator_.FindCached(scan.from, 0, position)) co_return position;
  const std::vector<NodePtr>& first = inner_nodes_.first_leaves();
  if (scan.is_short && scan.from.text.empty() && !first.empty()) co_return Position{.node = first.front()};
  position = co_await locator_.Find(op, scan.from, 0);
  co_return position;
}

bool Scanner::IsOfFront(NodePtr leaf) const {
  const std::vector<NodePtr>& first = inner_nodes_.first_leaves();
  return std::find(first.begin(), first.end(), leaf) != first.end();
}

void Scanner::NoteFront(const Progress& scan, const std::vector<Item>& items) {
  const NodePtr front = scan.ahead[0];
  const bool empty = items.empty() || (scan.met_empty && scan.leaves[0].Count(table_.shape()) == 0);
  if (empty) empty_front_ = front;
  if (!empty && empty_front_ == front) empty_front_ = NodePtr();
}

std::vector<NodePtr> Scanner::LeavesAhead(const Position& position, size_t wanted) const {
  std::vector<NodePtr> ahead = {position.node};
  std::shared_ptr<const Inner> parent = inner_nodes_.CachedShared(position.parent);
  // Then those of the next parents, of which there are as many at most.
  size_t i = parent == nullptr ? 0 : parent->Find(position.node) + 1;
  for (size_t parents = 0; parents < kLeavesAtOnce && parent != nullptr; ++parents) {
    for (; i < parent->size() && ahead.size() < wanted; ++i) ahead.push_back(parent->child(i));
    if (ahead.size() == wanted) break;
    parent = inner_nodes_.CachedShared(parent->sibling());
    i = 0;
  }
  // Then those of the front.
  const std::vector<NodePtr>& first = inner_nodes_.first_leaves();
  auto next = std::find(first.begin(), first.end(), ahead.back());
  while (next != first.end() && ++next != first.end() && ahead.size() < wanted) ahead.push_back(*next);
  return ahead;
}

// The first leaf counts in any case: it is READ until it is at rest.
Task<Done> Scanner::ReadAhead(Op& op, Progress& scan, size_t records) {
  const size_t enough = scan.met_empty ? kLeavesAtOnce : std::min(kLeavesAtOnce, LeavesFor(records));
  scan.ahead = LeavesAhead(scan.position, enough);
  scan.leaves.clear();
  co_await leaves_.ReadSeveral(op, scan.ahead, scan.leaves, scan.at_rest);
  if (scan.at_rest[0]) co_return Done{};
  op.CountRetry();
  co_await leaves_.Read(op, scan.ahead[0], scan.leaves[0]);
  co_return Done{};
}

Task<bool> Scanner::Arrive(Op& op, Progress& scan) {
  const Leaf& leaf = scan.leaves[0];
  if (!scan.arrived && leaf.dead() && scan.attempts++ < kMostAttempts && !Mutant(kHeirIgnored)) {
    scan.dead = scan.position.node;
    scan.position = co_await locator_.GoToHeir(op, scan.position, leaf.header);
    co_return false;
  }
  const bool below = co_await bounds_.IsBelowFence(op, scan.from, leaf.header, scan.clears);
  if (!below && !scan.dead.null() && NodePtr(leaf.header.sibling) == scan.dead) {
    scan.arrived = true;
    scan.position.node = scan.dead;
    co_return false;
  }
  if (!below && scan.attempts++ < kMostAttempts) {
    scan.position = co_await locator_.GoRight(op, scan.from, scan.position, leaf.header);
    co_return false;
  }
  scan.arrived = true;
  co_return true;
}

Task<std::vector<Item>> Scanner::TakeLeaves(Op& op, const KeyRange& range, Progress& scan, size_t wanted) {
  std::vector<Item> items;
  items.reserve(scan.ahead.size() * table_.shape().span);
  scan.next = scan.ahead[0];
  for (size_t i = 0; i < scan.ahead.size() && !scan.done && items.size() < wanted; ++i) {
    const bool follows = scan.ahead[i] == scan.next || Mutant(kScanTrustsCache);
    if (!follows || (i > 0 && !scan.at_rest[i])) break;
    records_.Collect(scan.leaves[i], range, items);
    const Header& header = scan.leaves[i].header;
    scan.done = co_await EndsAtFence(op, range, header, scan.clears);
    scan.next = NodePtr(header.sibling);
    if (!scan.done && (scan.next.null() || !scan.next.is_leaf()))
      co_return Damaged(scan.ahead[i], "has a fence and no sibling");
  }
  co_return std::move(items);
}

// The whole fence is READ only if its first bytes do not tell.
Task<bool> Scanner::EndsAtFence(Op& op, const KeyRange& range, Header header, uint64_t clears) {
  if (BoundRef(header.fence_ref).infinite()) co_return true;
  if (!range.to.has_value()) co_return false;
  const uint64_t prefix = PrefixOf(*range.to);
  if (prefix != header.fence_prefix) co_return prefix < header.fence_prefix;
  const Bound fence = co_await bounds_.FenceOf(op, header, clears);
  co_return fence.text >= *range.to;
}

Task<NodePtr> Scanner::ParentOfNext(Op& op, const Progress& scan) {
  const NodePtr parent = scan.position.parent;
  if (parent.null()) co_return parent;
  std::shared_ptr<const Inner> node = co_await inner_nodes_.Get(op, parent);
  if (node->Find(scan.next) < node->size()) co_return parent;
  if (!node->sibling().null()) {
    // The front tells as much, without a trip.
    const bool is_cached = inner_nodes_.Cached(node->sibling()) != nullptr;
    if (!is_cached && scan.is_short && IsOfFront(scan.next)) co_return NodePtr();
    const std::shared_ptr<const Inner> sibling = co_await inner_nodes_.Get(op, node->sibling());
    if (sibling->Find(scan.next) < sibling->size()) co_return sibling->at();
  }
  node = co_await inner_nodes_.Load(op, parent);
  const bool here = node->Find(scan.next) < node->size() || node->sibling().null();
  co_return here ? parent : node->sibling();
}

}  // namespace farside::index::chime
