#include "index/chime/inner_merger.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "index/chime/circle.h"
#include "index/chime/errors.h"
#include "index/chime/merge_writes.h"
#include "index/chime/mutants.h"
#include "index/chime/recovery.h"

namespace farside::index::chime {

using fabric::Op;
using fabric::Order;

namespace {

// Another client that changes one of the nodes is done soon. A node that is never free stays.
constexpr int kMostAttempts = 3;

}  // namespace

bool StaysFirst(const Shape& shape, const Bound& begin, uint32_t level) {
  if (begin == Bound()) return true;
  // INVARIANT chime/11: with keys=inline, no parent of leaves has leaves of both halves.
  return shape.inline_keys && level <= 1 && begin.prefix == kMiddle && !Mutant(kParentsAcross);
}

Task<bool> InnerMerger::MergeLonely(Op& op, Key key, NodePtr lonely, const pool::PoolClient::Pin& pin) {
  bool merged = false;
  while (!lonely.null() && lonely.level() < root_.node().level()) {
    Position parent;
    const bool known = locator_.FindCached(key, lonely.level() + 1, parent);
    const Inner* const node = known ? inner_nodes_.Cached(parent.node) : nullptr;
    const size_t index = node != nullptr ? node->Find(lonely) : 0;
    // It stays; but its parent may have no other child, too.
    if (node != nullptr && index < node->size() &&
        StaysFirst(table_.shape(), node->LowerBound(index), lonely.level())) {
      lonely = node->size() == 1 ? parent.node : NodePtr();
      continue;
    }
    const Outcome outcome = co_await Merge(op, key, lonely.level(), pin);
    merged |= outcome.merged == Merged::kGone;
    lonely = outcome.lonely;
  }
  co_return merged;
}

Task<InnerMerger::Outcome> InnerMerger::Merge(Op& op, Key key, uint32_t level,
                                              const pool::PoolClient::Pin& pin) {
  Position parent;
  if (!locator_.FindCached(key, level + 1, parent)) parent = co_await locator_.Find(op, key, level + 1);
  NodePtr at = parent.node;
  CircleWithHeirs passed;
  for (int attempt = 0; attempt < kMostAttempts && !at.null();) {
    Trio trio;
    trio.parent.at = at;
    trio.parent.image = inner_nodes_.NewImage();
    const std::array reads = inner_nodes_.ReadsOf(at, trio.parent.image);
    co_await locks_.Lock(op, at, reads);
    const Result<Outcome> outcome = co_await MergeUnder(op, key, trio, pin).Outcome();
    if (outcome.ok() && outcome->merged == Merged::kInDoubt) co_return *outcome;  // the lock stays held
    locks_.Unlock(op, at);
    if (!outcome.ok()) co_return outcome.error();
    if (outcome->merged != Merged::kAgain && outcome->merged != Merged::kElsewhere) co_return *outcome;
    op.CountRetry();
    if (outcome->merged == Merged::kElsewhere) {
      if (passed.Closes(at, trio.parent.image.dead())) co_return Damaged(at, kInCircles);
      at = trio.parent.image.next();
      continue;
    }
    ++attempt;
    co_await op.Pause(table_.options.backoff);
  }
  co_return Outcome{.merged = Merged::kStays};
}

Task<InnerMerger::Outcome> InnerMerger::MergeUnder(Op& op, Key key, Trio& trio,
                                                   const pool::PoolClient::Pin& pin) {
  Locked& parent = trio.parent;
  parent.decoded = co_await inner_nodes_.Decode(op, parent.at, parent.image);
  if (parent.image.dead() || !IsBelow(key, parent.decoded.fence)) {
    inner_nodes_.Drop(parent.at);
    co_return Outcome{.merged = Merged::kElsewhere};  // what was remembered is out of date
  }
  const std::vector<Pivot>& pivots = parent.decoded.pivots;
  while (trio.index + 1 < pivots.size() && !IsBelow(key, pivots[trio.index + 1].bound)) ++trio.index;
  const Pivot& pivot = pivots[trio.index];
  if (trio.index == 0 || StaysFirst(table_.shape(), pivot.bound, pivot.raw.child.level())) {
    inner_nodes_.Remember(parent.at, parent.image, parent.decoded);
    co_return Outcome{.merged = Merged::kStays, .lonely = pivots.size() == 1 ? parent.at : NodePtr()};
  }
  trio.left.at = pivots[trio.index - 1].raw.child;
  trio.right.at = pivot.raw.child;
  const bool locked = co_await TryLockBoth(op, trio);
  if (!locked) co_return Outcome{.merged = Merged::kAgain};
  const Result<Merged> merged = co_await MergeLocked(op, trio, pin).Outcome();
  if (merged.ok() && *merged == Merged::kInDoubt) co_return Outcome{.merged = Merged::kInDoubt};
  locks_.Unlock(op, trio.left.at);
  locks_.Unlock(op, trio.right.at);
  if (!merged.ok()) co_return merged.error();
  const bool alone = *merged == Merged::kGone && pivots.size() == 1;
  co_return Outcome{.merged = *merged, .lonely = alone ? parent.at : NodePtr()};
}

Task<InnerMerger::Merged> InnerMerger::MergeLocked(Op& op, Trio& trio, const pool::PoolClient::Pin& pin) {
  Locked& left = trio.left;
  Locked& right = trio.right;
  left.decoded = co_await inner_nodes_.Decode(op, left.at, left.image);
  right.decoded = co_await inner_nodes_.Decode(op, right.at, right.image);
  if (!CanMerge(trio)) co_return Merged::kStays;
  const Result<Done> done = co_await Write(op, trio).Outcome();
  // As in a merge of leaves: what this client has sent may still take effect, so all locks stay held until it
  // is fenced.
  if (!done.ok()) co_return Merged::kInDoubt;
  RetireInner(table_, right.at, pin);
  inner_nodes_.Drop(right.at);
  inner_nodes_.Remember(left.at, left.image, left.decoded);
  inner_nodes_.Remember(trio.parent.at, trio.parent.image, trio.parent.decoded);
  co_return Merged::kGone;
}

bool InnerMerger::CanMerge(const Trio& trio) const {
  const Locked& left = trio.left;
  const Locked& right = trio.right;
  const Pivot& pivot = trio.parent.decoded.pivots[trio.index];
  const bool live = !left.image.dead() && !right.image.dead();
  // A node between them that the parent does not know yet (chime/7) would be lost.
  const bool adjacent = NodePtr(left.image.header.sibling) == right.at || Mutant(kInnerMergedOver);
  const bool lonely = right.decoded.pivots.size() == 1 && right.decoded.pivots[0].bound == pivot.bound;
  return live && adjacent && lonely && left.decoded.pivots.size() < table_.shape().fanout;
}

// CAS, READ keep their order.
Task<bool> InnerMerger::TryLockBoth(Op& op, Trio& trio) {
  trio.left.image = inner_nodes_.NewImage();
  trio.right.image = inner_nodes_.NewImage();
  const std::array of_left = inner_nodes_.ReadsOf(trio.left.at, trio.left.image);
  const std::array of_right = inner_nodes_.ReadsOf(trio.right.at, trio.right.image);
  const bool locked = co_await locks_.TryLockTwo(op, trio.left.at, of_left, trio.right.at, of_right);
  co_return locked;
}

Task<Done> InnerMerger::Write(Op& op, Trio& trio) {
  const Shape& shape = table_.shape();
  auto& [parent, left, right, index] = trio;
  Pivot moved = right.decoded.pivots[0];
  moved.slot = FirstFreeSlot(left.decoded.pivots);
  std::array<std::byte, kMostPivotBytes> bytes;
  StorePivot(shape, bytes.data(), moved.raw);
  Header dead = right.image.header;
  dead.heir = left.at.word();
  InheritInner(left.image.header, right.image.header);
  left.decoded.fence = right.decoded.fence;
  left.decoded.pivots.push_back(std::move(moved));
  // INVARIANT chime/12
  if (!Mutant(kDeathsNotCounted)) parent.image.header.moves += 1;

  MergeWrites writes(table_, root_);
  const auto die = fabric::Write(table_.At(right.at) + kUnlockedOffset, BytesBehindLock(dead));
  const auto fill = fabric::Write(table_.At(left.at) + shape.PivotOffset(left.decoded.pivots.back().slot),
                                  std::span<const std::byte>(bytes).first(shape.pivot_bytes()));
  if (Mutant(kInnerFilledFirst)) writes.Add(left.at, fill);
  writes.Add(right.at, die);
  writes.Add(left.at, fill);
  writes.Add(left.at,
             fabric::Write(table_.At(left.at) + kUnlockedOffset, BytesBehindLock(left.image.header)));
  writes.Add(parent.at,
             fabric::Write(table_.At(parent.at) + kUnlockedOffset, BytesBehindLock(parent.image.header)));
  const size_t slot = parent.decoded.pivots[index].slot;
  if (!Mutant(kRetiredWhileNamed)) writes.Add(parent.at, inner_nodes_.ClearPivotVerb(parent.at, slot));
  co_await writes.Run(op);
  parent.decoded.pivots.erase(parent.decoded.pivots.begin() + static_cast<std::ptrdiff_t>(index));
  co_return Done{};
}

}  // namespace farside::index::chime
