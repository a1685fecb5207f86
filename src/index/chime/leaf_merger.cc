#include "index/chime/leaf_merger.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "index/chime/circle.h"
#include "index/chime/errors.h"
#include "index/chime/merge_writes.h"
#include "index/chime/mutants.h"
#include "index/chime/recovery.h"

namespace farside::index::chime {

using fabric::Op;
using fabric::Read;

namespace {

// Another client that changes one of the leaves is done soon. A leaf that is never free stays.
constexpr int kMostAttempts = 3;
// Merges of one delete: each makes another one possible. Far more than there are levels.
constexpr int kMostMerges = 4 * static_cast<int>(kMostLevels);

}  // namespace

Task<Done> LeafMerger::MergeEmptied(Op& op, Key key, NodePtr leaf, const pool::PoolClient::Pin& pin) {
  for (int merges = 0; merges < kMostMerges; ++merges) {
    const Outcome outcome = co_await Merge(op, key, leaf, pin);
    if (outcome.merged == Merged::kInDoubt) co_return Done{};
    leaf = outcome.empty;
    bool is_first = outcome.first;
    if (!outcome.lonely.null()) {
      const bool gone = co_await inner_merger_.MergeLonely(op, key, outcome.lonely, pin);
      is_first = !gone;
    }
    if (leaf.null() || is_first) co_return Done{};
  }
  co_return Done{};
}

Task<LeafMerger::Outcome> LeafMerger::Merge(Op& op, Key key, NodePtr leaf, const pool::PoolClient::Pin& pin) {
  Position parent;
  if (!locator_.FindCached(key, 1, parent)) parent = co_await locator_.Find(op, key, 1);
  // The first child has no leaf before it under this parent.
  const Inner* const node = inner_nodes_.Cached(parent.node);
  if (node != nullptr && node->Find(leaf) == 0 &&
      (StaysFirst(table_.shape(), node->LowerBound(0), 0) || Mutant(kFirstRemembered))) {
    const NodePtr lonely = node->size() == 1 ? parent.node : NodePtr();
    co_return Outcome{.merged = Merged::kStays, .empty = leaf, .first = true, .lonely = lonely};
  }
  NodePtr at = parent.node;
  CircleWithHeirs passed;
  for (int attempt = 0; attempt < kMostAttempts && !at.null();) {
    InnerImage image = inner_nodes_.NewImage();
    const std::array reads = inner_nodes_.ReadsOf(at, image);
    co_await locks_.Lock(op, at, reads);
    const Result<Outcome> outcome = co_await MergeUnder(op, key, leaf, at, image, pin).Outcome();
    if (outcome.ok() && outcome->merged == Merged::kInDoubt) co_return *outcome;  // the lock stays held
    locks_.Unlock(op, at);
    if (!outcome.ok()) co_return outcome.error();
    if (outcome->merged == Merged::kGone || outcome->merged == Merged::kStays) co_return *outcome;
    op.CountRetry();
    if (outcome->merged == Merged::kElsewhere) {
      if (passed.Closes(at, image.dead())) co_return Damaged(at, kInCircles);
      at = image.next();
      continue;
    }
    ++attempt;
    co_await op.Pause(table_.options.backoff);
  }
  co_return Outcome{.merged = Merged::kStays};
}

Task<LeafMerger::Outcome> LeafMerger::MergeUnder(Op& op, Key key, NodePtr leaf, NodePtr parent,
                                                 InnerImage& image, const pool::PoolClient::Pin& pin) {
  DecodedInner decoded = co_await inner_nodes_.Decode(op, parent, image);
  // INVARIANT chime/12: another node has the children of a dead one.
  const bool dead = image.dead() && !Mutant(kDeadInnerChanged);
  if (dead || !IsBelow(key, decoded.fence)) {
    inner_nodes_.Drop(parent);
    co_return Outcome{.merged = Merged::kElsewhere};  // what was remembered is out of date
  }
  std::vector<Pivot>& pivots = decoded.pivots;
  const auto pivot =
      std::find_if(pivots.begin(), pivots.end(), [leaf](const Pivot& of) { return of.raw.child == leaf; });
  const bool is_first = pivot == pivots.begin();
  if (pivot == pivots.end() || is_first) {
    inner_nodes_.Remember(parent, image, decoded);
    co_return Outcome{.merged = Merged::kStays,
                      .empty = is_first ? leaf : NodePtr(),
                      .first = is_first,
                      .lonely = is_first && pivots.size() == 1 ? parent : NodePtr()};
  }
  const BoundRef separator = pivot->raw.ref;
  uint64_t separator_bytes = 0;
  if (separator.in_block()) separator_bytes = co_await table_.SizeOf(op, separator.block());

  Pair pair{.left = std::prev(pivot)->raw.child,
            .leaf = leaf,
            .parent = parent,
            .slot = pivot->slot,
            .left_is_first = std::prev(pivot) == pivots.begin()};
  const bool locked = co_await TryLockBoth(op, pair);
  if (!locked) co_return Outcome{.merged = Merged::kAgain};
  Outcome outcome{.merged = Merged::kStays};
  if (CanMerge(pair)) {
    const Result<Done> done = co_await Write(op, pair).Outcome();
    // A memory node is out of reach, or this client is cut off, and what it has sent may still take effect.
    // So all locks stay held until this client is fenced, which it will be: it does not renew its lease
    // there. Then other clients see what was done.
    if (!done.ok()) co_return Outcome{.merged = Merged::kInDoubt};
    RetireLeaf(table_, leaf, separator, separator_bytes, pin);
    pivots.erase(pivot);
    inner_nodes_.Remember(parent, image, decoded);
    outcome = {.merged = Merged::kGone,
               .empty = EmptyLeftOf(pair),
               .first = pair.left_is_first,
               .lonely = pivots.size() == 1 ? parent : NodePtr()};
  }
  // INVARIANT chime/14
  const bool merged = outcome.merged == Merged::kGone;
  const bool counts_death = merged && !Mutant(kDeathNotCounted);
  locks_.Unlock(op, pair.left, NodeLock(pair.before.header.lock), merged ? Range::kChanged : Range::kSame);
  locks_.Unlock(op, pair.leaf, NodeLock(pair.empty.header.lock),
                counts_death ? Range::kChanged : Range::kSame);
  co_return outcome;
}

NodePtr LeafMerger::EmptyLeftOf(const Pair& pair) const {
  const bool may_be_empty = pair.left_is_first || pair.before.Count(table_.shape()) == 0;
  return may_be_empty ? pair.left : NodePtr();
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

// The lines of the left leaf tell whether it is empty too: a merge may have been given up. What the first
// leaf of a parent has matters only if the parent is merged, and is READ then.
Task<bool> LeafMerger::TryLockBoth(Op& op, Pair& pair) {
  const fabric::FarAddr left = table_.At(pair.left);
  const fabric::FarAddr leaf = table_.At(pair.leaf);
  const Shape& shape = table_.shape();
  const std::array of_left = {Read(left, pair.before.header_bytes()),
                              Read(left + pool::kLine, pair.before.lines(shape))};
  const std::array of_leaf = {Read(leaf, pair.empty.header_bytes()),
                              Read(leaf + pool::kLine, pair.empty.lines(shape))};
  const bool locked = co_await locks_.TryLockTwo(
      op, pair.left, std::span(of_left).first(pair.left_is_first ? 1 : 2), pair.leaf, of_leaf);
  co_return locked;
}

Task<Done> LeafMerger::Write(Op& op, const Pair& pair) {
  const Header& empty = pair.empty.header;
  Header grown = pair.before.header;
  Inherit(grown, empty);
  Header dead = empty;
  dead.heir = pair.left.word();
  dead.moves += 2;
  MergeWrites writes(table_, root_);
  writes.Add(pair.leaf, fabric::Write(table_.At(pair.leaf) + kUnlockedOffset, BytesBehindLock(dead)));
  writes.Add(pair.left, fabric::Write(table_.At(pair.left) + kUnlockedOffset, BytesBehindLock(grown)));
  if (!Mutant(kRetiredWhileNamed))
    writes.Add(pair.parent, inner_nodes_.ClearPivotVerb(pair.parent, pair.slot));
  co_await writes.Run(op);
  co_return Done{};
}

}  // namespace farside::index::chime
