// Merging: a leaf that has become empty goes, and the one to its left gets its keys.
//
// L is the leaf, P the one before it under the same parent G. Whoever does it holds the locks of G, P and L, taken in this
// order, the last two without waiting.
//
//   1  the header of L: P is its heir. From here on L is dead, and nobody changes it any more.
//   2  the header of P: the fence and the sibling of L. From here on P has the keys.
//   3  the pivot of L in G is cleared
//   4  `merges` of the root block is raised (chime/8)
//   5  L is retired, and so is its separator if that has a block; the locks are released
//
// If the client dies before 1, nothing has happened. After 1, whoever takes over P does 2; after 2, whoever takes over G does
// 3 to 5 (but does 2 before it, if need be). After 3, L is nobody's, and a sweep finds it: its walk raises `merges`.
//
// So as long as P names a dead sibling, or G a dead child, its lock is held by whoever merges, or has died over it: who comes
// by a lock that nobody died with finds neither (chime/9).
//
// The first leaf of a parent stays: there is no P. So with keys=inline nothing is merged across the middle (chime/11).
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "index/chime/chime.h"
#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/members/membership.h"

namespace farside::index::chime {

using fabric::Cas;
using fabric::Faa;
using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::Write;
using pool::LockWord;
using pool::Standing;

namespace {

// Somebody who changes one of the leaves is done soon. A leaf that is never free is left as it is.
constexpr int kMostAttempts = 3;

std::span<const std::byte> WithoutLock(const Header& header) {
  return std::as_bytes(std::span(&header, 1)).subspan(kUnlockedOffset);
}

}  // namespace

// ---- who comes to a dead leaf -------------------------------------------------------------------------

// The heir, from which the way is along the siblings: the parent may still lead here. If it does, and whoever should have
// cleared the pivot is dead, this client does.
Task<Table::PathNode> Table::GoToHeir(Op& op, PathNode at_node, Header header) {
  const NodePtr heir(header.heir);
  if (!heir.is_leaf() || !IsOnNodes(heir.word(), nodes_)) co_return Damaged(at_node.node, "has no heir");
  if (!at_node.parent.null() && !at_node.by_sibling) {
    const std::shared_ptr<const Inner> parent = co_await LoadInner(op, at_node.parent);
    const bool named = parent->Find(at_node.node) < parent->size();
    if (named && !pool_.read_only()) co_await FinishForTheDead(op, at_node.parent);
  }
  co_return PathNode{.node = heir, .parent = at_node.parent, .by_sibling = true};
}

// Does not wait: if the owner of the lock lives, it is at it.
Task<Done> Table::FinishForTheDead(Op& op, NodePtr at) {
  const auto held = co_await op.InOrder(Read<uint64_t>(At(at) + kLockOffset));
  if (held == 0) co_return Done{};
  const Standing standing = co_await pool_.member(nodes_[at.node()]).StandingOf(op, LockWord(held).owner());
  if (standing != Standing::kGone) co_return Done{};
  const Result<Done> taken = co_await TakeOver(op, at, held).Outcome();
  if (!taken.ok() && taken.error().code() != ErrorCode::kContended) co_return taken.error();
  co_return Done{};
}

// ---- merging -------------------------------------------------------------------------------------------

// A delete has left the leaf empty. That it stays if others are in the way is no error.
Task<Done> Table::Absorb(Op& op, Key key, NodePtr leaf, const pool::PoolClient::Pin& pin) {
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const std::optional<PathNode> known = Known(key, 1);
    PathNode parent;
    if (known.has_value()) {
      parent = *known;
    } else {
      parent = co_await Find(op, key, 1);
    }
    // The first child has nobody before it under this parent.
    const Inner* const node = cache_.Find(parent.node);
    if (node != nullptr && node->Find(leaf) == 0) co_return Done{};
    InnerImage image;
    image.memory = memory_;
    const std::array reads = {Read(At(parent.node), std::as_writable_bytes(std::span(&image.header, 1))),
                              Read(At(parent.node) + pool::kLine, image.lines(shape()))};
    co_await Lock(op, parent.node, reads);
    const Result<Absorbed> outcome = co_await AbsorbUnder(op, key, leaf, parent.node, image, pin).Outcome();
    if (outcome.ok() && *outcome == Absorbed::kInDoubt) co_return Done{};  // the lock stays held
    Unlock(op, parent.node);
    if (!outcome.ok()) co_return outcome.error();
    if (*outcome == Absorbed::kDecided) co_return Done{};
    op.CountRetry();
    co_await op.Pause(options_.backoff);
  }
  co_return Done{};
}

// The lock of the parent is held, and stays so.
Task<Table::Absorbed> Table::AbsorbUnder(Op& op, Key key, NodePtr leaf, NodePtr parent, InnerImage& image,
                                         const pool::PoolClient::Pin& pin) {
  Bound fence;
  std::vector<Pivot> pivots = co_await Decode(op, parent, image, fence);
  if (!IsBelow(key, fence)) {
    cache_.Drop(parent);
    co_return Absorbed::kAgain;  // what was remembered is out of date
  }
  const auto pivot =
      std::find_if(pivots.begin(), pivots.end(), [leaf](const Pivot& of) { return of.raw.child == leaf; });
  if (pivot == pivots.end() || pivot == pivots.begin()) co_return Absorbed::kDecided;
  const RawPivot raw = pivot->raw;
  const size_t slot = pivot->slot;
  const NodePtr left = std::prev(pivot)->raw.child;
  uint64_t bound_bytes = 0;
  if (raw.ref.in_block()) bound_bytes = co_await BytesOf(op, raw.ref.block());

  Leaf before;
  Leaf empty;
  const bool locked = co_await TryLockBoth(op, left, leaf, before, empty);
  if (!locked) co_return Absorbed::kAgain;
  const bool sound = NodeInfo(before.header.info) == NodeInfo::Of(0) &&
                     NodeInfo(empty.header.info) == NodeInfo::Of(0) && !before.dead() && !empty.dead() &&
                     NodePtr(before.header.sibling) == leaf && before.header.moves % 2 == 0 &&
                     empty.header.moves % 2 == 0;
  const bool is_empty = empty.Count(shape()) == 0 || Mutant(kAbsorbedNotEmpty);
  Result<Done> done = Done{};
  if (sound && is_empty)
    done = co_await WriteMerge(op, left, leaf, before.header, empty.header, parent, slot).Outcome();
  if (!done.ok()) {
    // A memory node is out of reach, or this client is cut off; what was written there may still land. So all locks stay held
    // under its name until it is fenced, which it will be: it gives no sign of life there. Then others see what was done.
    co_return Absorbed::kInDoubt;
  }
  if (sound && is_empty) {
    RetireLeaf(leaf, raw.ref, bound_bytes, pin);
    pivots.erase(pivot);
    Remember(parent, image, fence, pivots);
  }
  Unlock(op, left);
  Unlock(op, leaf);
  co_return Absorbed::kDecided;
}

// Both, or none. CAS, READ keep their order.
Task<bool> Table::TryLockBoth(Op& op, NodePtr left, NodePtr leaf, Leaf& before, Leaf& empty) {
  const uint64_t left_mine = LockedBySelf(left);
  const uint64_t leaf_mine = LockedBySelf(leaf);
  bool have_left = false;
  bool have_leaf = false;
  if (left.node() == leaf.node()) {
    fabric::Batch trip(op, Order::kInOrder);
    const size_t first = trip.Add(Cas(At(left) + kLockOffset, 0, left_mine));
    trip.Add(Read(At(left), before.header_bytes()));
    const size_t second = trip.Add(Cas(At(leaf) + kLockOffset, 0, leaf_mine));
    trip.Add(Read(At(leaf), empty.header_bytes()));
    trip.Add(Read(At(leaf) + pool::kLine, empty.lines(shape())));
    co_await trip;
    have_left = trip.Old(first) == 0;
    have_leaf = trip.Old(second) == 0;
  } else {
    const std::array of_left = {Read(At(left), before.header_bytes())};
    const uint64_t left_held = co_await TryLock(op, left, of_left);
    have_left = left_held == 0;
    if (!have_left) co_return false;
    const std::array of_leaf = {Read(At(leaf), empty.header_bytes()),
                                Read(At(leaf) + pool::kLine, empty.lines(shape()))};
    const Result<uint64_t> leaf_held = co_await TryLock(op, leaf, of_leaf).Outcome();
    if (!leaf_held.ok()) {
      // That memory node is out of reach, and nothing was changed. This client lives on, and so would the lock.
      Unlock(op, left);
      co_return leaf_held.error();
    }
    have_leaf = *leaf_held == 0;
  }
  if (have_left && have_leaf) co_return true;
  if (have_left) Unlock(op, left);
  if (have_leaf) Unlock(op, leaf);
  co_return false;
}

// Steps 1 to 4, in as few trips as there are memory nodes: WRITE, WRITE and WRITE, FAA keep their order.
Task<Done> Table::WriteMerge(Op& op, NodePtr left, NodePtr leaf, Header before, Header empty, NodePtr parent,
                             size_t slot) {
  Header grown = before;
  grown.fence_prefix = empty.fence_prefix;
  grown.fence_ref = empty.fence_ref;
  grown.sibling = empty.sibling;
  grown.moves += 2;
  Header dead = empty;
  dead.heir = left.word();
  dead.moves += 2;
  const std::array<std::byte, 24> no_pivot{};
  std::vector<fabric::WriteVerb> writes = {
      Write(At(leaf) + kUnlockedOffset, WithoutLock(dead)),
      Write(At(left) + kUnlockedOffset, WithoutLock(grown)),
      Write(At(parent) + shape().PivotOffset(slot), std::span(no_pivot).first(shape().pivot_bytes()))};
  std::vector<size_t> nodes = {leaf.node(), left.node(), parent.node()};
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
    raised = first == writes.size() && nodes_[node] == root_block_.node;
    if (raised) trip.Add(Faa(root_block_ + kMergesOffset, 1));
    co_await trip;
  }
  if (!raised) co_await RaiseMerges(op);
  co_return Done{};
}

Task<Done> Table::RaiseMerges(Op& op) {
  co_await op.InOrder(Faa(root_block_ + kMergesOffset, 1));
  co_return Done{};
}

// Nobody who comes from now on is led to them. The separator stood in the parent and in the heir's header, nowhere else: it
// would be the fence of an inner node only if the leaf were the first child of the next one.
void Table::RetireLeaf(NodePtr leaf, BoundRef bound, uint64_t bound_bytes, const pool::PoolClient::Pin& pin) {
  const FarAddr at = At(leaf);
  pool_.allocator(at.node).Retire(at, shape().leaf_bytes(), pin.epoch(at.node));
  if (!bound.in_block()) return;
  const FarAddr bound_at = AddressOf(bound.word(), nodes_);
  pool_.allocator(bound_at.node).Retire(bound_at, bound_bytes, pin.epoch(bound_at.node));
}

// ---- finishing what somebody died over ------------------------------------------------------------------

// Step 2, if that is what the owner died before. The lock of the leaf is held, taken over.
Task<Done> Table::CompleteAbsorption(Op& op, NodePtr at, Header& header) {
  const NodePtr sibling(header.sibling);
  // A leaf that is dead itself gets nothing: its sibling, as it was when it died, is somebody else's by now.
  if (header.heir != 0 && !Mutant(kDeadInherits)) co_return Done{};
  if (sibling.null() || Mutant(kMergeNotCompleted)) co_return Done{};
  const auto next = co_await op.InOrder(Read<Header>(At(sibling)));
  if (NodeInfo(next.info) != NodeInfo::Of(0)) co_return Damaged(sibling, "is not a leaf");
  if (next.heir == 0) co_return Done{};
  if (NodePtr(next.heir) != at) co_return Damaged(sibling, "has another heir than the leaf before it");
  header.fence_prefix = next.fence_prefix;
  header.fence_ref = next.fence_ref;
  header.sibling = next.sibling;
  header.moves += 2;
  co_return Done{};
}

// Of the children, as many in a trip as are on one node and as devices answer at once.
Task<std::vector<Header>> Table::ReadHeaders(Op& op, std::span<const Pivot> pivots) {
  std::vector<Header> headers(pivots.size());
  for (size_t begin = 0; begin < pivots.size();) {
    fabric::Batch trip(op, Order::kInOrder);
    size_t i = begin;
    while (i < pivots.size() && i - begin < fabric::kAnsweredVerbsPerRoundTrip &&
           pivots[i].raw.child.node() == pivots[begin].raw.child.node()) {
      trip.Add(Read(At(pivots[i].raw.child), std::as_writable_bytes(std::span(&headers[i], 1))));
      ++i;
    }
    co_await trip;
    begin = i;
  }
  co_return headers;
}

// Steps 3 to 5, if that is what the owner died before. The lock of the parent is held, taken over; it stays so.
Task<Done> Table::ClearDeadChildren(Op& op, NodePtr at) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  InnerImage image;
  image.memory = memory_;
  co_await op.InOrder(Read(At(at), std::as_writable_bytes(std::span(&image.header, 1))),
                      Read(At(at) + pool::kLine, image.lines(shape())));
  Bound fence;
  const std::vector<Pivot> pivots = co_await Decode(op, at, image, fence);
  const std::vector<Header> headers = co_await ReadHeaders(op, pivots);
  for (size_t i = 1; i < pivots.size(); ++i) {
    if (headers[i].heir == 0 || Mutant(kDeadChildKept)) continue;
    const Pivot& pivot = pivots[i];
    const NodePtr child = pivot.raw.child;
    const NodePtr heir(headers[i].heir);
    const auto before = co_await op.InOrder(Read<Header>(At(heir)));
    if (NodePtr(before.sibling) == child) co_await AwaitUnlocked(op, heir);
    uint64_t bound_bytes = 0;
    if (pivot.raw.ref.in_block()) bound_bytes = co_await BytesOf(op, pivot.raw.ref.block());
    const std::array<std::byte, 24> no_pivot{};
    co_await op.InOrder(
        Write(At(at) + shape().PivotOffset(pivot.slot), std::span(no_pivot).first(shape().pivot_bytes())));
    co_await RaiseMerges(op);
    RetireLeaf(child, pivot.raw.ref, bound_bytes, pin);
  }
  co_return Done{};
}

}  // namespace farside::index::chime
