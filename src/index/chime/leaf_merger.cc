#include "index/chime/leaf_merger.h"

#include <algorithm>
#include <array>
#include <vector>

#include "index/chime/mutants.h"
#include "index/chime/recovery.h"

namespace farside::index::chime {

using fabric::Op;
using fabric::Order;
using fabric::Read;

namespace {

// Another client that changes one of the leaves is done soon. A leaf that is never free stays.
constexpr int kMostAttempts = 3;

}  // namespace

Task<Done> LeafMerger::MergeEmptied(Op& op, Key key, NodePtr leaf, const pool::PoolClient::Pin& pin) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Position parent;
    if (!locator_.FindCached(key, 1, parent)) parent = co_await locator_.Find(op, key, 1);
    // The first child has no leaf before it under this parent.
    const Inner* const node = inner_nodes_.Cached(parent.node);
    if (node != nullptr && node->Find(leaf) == 0) co_return Done{};
    InnerImage image = inner_nodes_.NewImage();
    const std::array reads = inner_nodes_.ReadsOf(parent.node, image);
    co_await locks_.Lock(op, parent.node, reads);
    const Result<Merged> outcome = co_await MergeUnder(op, key, leaf, parent.node, image, pin).Outcome();
    if (outcome.ok() && *outcome == Merged::kInDoubt) co_return Done{};  // the lock stays held
    locks_.Unlock(op, parent.node);
    if (!outcome.ok()) co_return outcome.error();
    if (*outcome == Merged::kDecided) co_return Done{};
    op.CountRetry();
    co_await op.Pause(table_.options.backoff);
  }
  co_return Done{};
}

Task<LeafMerger::Merged> LeafMerger::MergeUnder(Op& op, Key key, NodePtr leaf, NodePtr parent,
                                                InnerImage& image, const pool::PoolClient::Pin& pin) {
  DecodedInner decoded = co_await inner_nodes_.Decode(op, parent, image);
  if (!IsBelow(key, decoded.fence)) {
    inner_nodes_.Drop(parent);
    co_return Merged::kAgain;  // the cached parent was out of date
  }
  std::vector<Pivot>& pivots = decoded.pivots;
  const auto pivot =
      std::find_if(pivots.begin(), pivots.end(), [leaf](const Pivot& of) { return of.raw.child == leaf; });
  if (pivot == pivots.end() || pivot == pivots.begin()) co_return Merged::kDecided;
  const BoundRef separator = pivot->raw.ref;
  uint64_t separator_bytes = 0;
  if (separator.in_block()) separator_bytes = co_await table_.SizeOf(op, separator.block());

  Pair pair{.left = std::prev(pivot)->raw.child, .leaf = leaf, .parent = parent, .slot = pivot->slot};
  const bool locked = co_await TryLockBoth(op, pair);
  if (!locked) co_return Merged::kAgain;
  if (CanMerge(pair)) {
    const Result<Done> done = co_await Write(op, pair).Outcome();
    // A memory node is out of reach, or this client is cut off, and what it has sent may still take effect.
    // So all locks stay held until this client is fenced, which it will be: it does not renew its lease
    // there. Then other clients see what was done.
    if (!done.ok()) co_return Merged::kInDoubt;
    RetireLeaf(table_, leaf, separator, separator_bytes, pin);
    pivots.erase(pivot);
    inner_nodes_.Remember(parent, image, decoded);
  }
  locks_.Unlock(op, pair.left);
  locks_.Unlock(op, pair.leaf);
  co_return Merged::kDecided;
}

bool LeafMerger::CanMerge(const Pair& pair) const {
  const Header& before = pair.before.header;
  const Header& empty = pair.empty.header;
  const bool are_leaves = NodeInfo(before.info) == NodeInfo::Of(0) && NodeInfo(empty.info) == NodeInfo::Of(0);
  const bool at_rest = before.moves % 2 == 0 && empty.moves % 2 == 0;
  const bool live = !pair.before.dead() && !pair.empty.dead();
  const bool is_empty = pair.empty.Count(table_.shape()) == 0 || Mutant(kAbsorbedNotEmpty);
  return are_leaves && at_rest && live && NodePtr(before.sibling) == pair.leaf && is_empty;
}

// CAS, READ keep their order.
Task<bool> LeafMerger::TryLockBoth(Op& op, Pair& pair) {
  if (pair.left.node() != pair.leaf.node()) {
    const bool locked = co_await TryLockOnTwoNodes(op, pair);
    co_return locked;
  }
  const fabric::FarAddr left = table_.At(pair.left);
  const fabric::FarAddr leaf = table_.At(pair.leaf);
  fabric::Batch trip(op, Order::kInOrder);
  const size_t first = trip.Add(locks_.LockVerb(pair.left));
  trip.Add(Read(left, pair.before.header_bytes()));
  const size_t second = trip.Add(locks_.LockVerb(pair.leaf));
  trip.Add(Read(leaf, pair.empty.header_bytes()));
  trip.Add(Read(leaf + pool::kLine, pair.empty.lines(table_.shape())));
  co_await trip;
  const bool have_left = trip.Old(first) == 0;
  const bool have_leaf = trip.Old(second) == 0;
  if (have_left && have_leaf) co_return true;
  if (have_left) locks_.Unlock(op, pair.left);
  if (have_leaf) locks_.Unlock(op, pair.leaf);
  co_return false;
}

Task<bool> LeafMerger::TryLockOnTwoNodes(Op& op, Pair& pair) {
  const std::array of_left = {Read(table_.At(pair.left), pair.before.header_bytes())};
  const uint64_t left_held = co_await locks_.TryLock(op, pair.left, of_left);
  if (left_held != 0) co_return false;
  const std::array of_leaf = {Read(table_.At(pair.leaf), pair.empty.header_bytes()),
                              Read(table_.At(pair.leaf) + pool::kLine, pair.empty.lines(table_.shape()))};
  const Result<uint64_t> leaf_held = co_await locks_.TryLock(op, pair.leaf, of_leaf).Outcome();
  if (leaf_held.ok() && *leaf_held == 0) co_return true;
  // Also if that memory node is out of reach: nothing was changed, and this client lives on, so the lock
  // would stay.
  locks_.Unlock(op, pair.left);
  if (!leaf_held.ok()) co_return leaf_held.error();
  co_return false;
}

// In as few trips as there are memory nodes: WRITE, WRITE and WRITE, FAA keep their order.
Task<Done> LeafMerger::Write(Op& op, const Pair& pair) {
  const Header& empty = pair.empty.header;
  Header grown = pair.before.header;
  Inherit(grown, empty);
  Header dead = empty;
  dead.heir = pair.left.word();
  dead.moves += 2;
  std::vector<fabric::WriteVerb> writes = {
      fabric::Write(table_.At(pair.leaf) + kUnlockedOffset, BytesBehindLock(dead)),
      fabric::Write(table_.At(pair.left) + kUnlockedOffset, BytesBehindLock(grown)),
      inner_nodes_.ClearPivotVerb(pair.parent, pair.slot)};
  std::vector<size_t> nodes = {pair.leaf.node(), pair.left.node(), pair.parent.node()};
  if (Mutant(kRetiredWhileNamed)) {
    writes.pop_back();
    nodes.pop_back();
  }
  size_t first = 0;
  bool raised = false;
  while (first < writes.size()) {
    fabric::Batch trip(op, Order::kInOrder);
    const size_t node = nodes[first];
    while (first < writes.size() && nodes[first] == node) trip.Add(writes[first++]);
    raised = first == writes.size() && table_.nodes[node] == table_.root_block.node;
    if (raised) trip.Add(root_.RaiseMergesVerb());
    co_await trip;
  }
  if (!raised) co_await root_.RaiseMerges(op);
  co_return Done{};
}

}  // namespace farside::index::chime
