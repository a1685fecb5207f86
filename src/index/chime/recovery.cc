#include "index/chime/recovery.h"

#include <array>
#include <span>
#include <vector>

#include "index/chime/errors.h"
#include "index/chime/inner_merger.h"
#include "index/chime/mutants.h"
#include "pool/members/membership.h"

namespace farside::index::chime {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::Write;
using pool::Standing;

Task<Done> Recovery::TakeOver(Op& op, NodePtr at, NodeLock held) {
  const FarAddr lock = table_.At(at) + kLockOffset;
  if (at.is_leaf() && Mutant(kNotNormalized)) {
    co_await op.InOrder(Cas(lock, held.word(), held.Freed().word()));
    co_return Done{};
  }
  const NodeLock mine = locks_.HeldBySelf(at, held);
  const auto old = co_await op.InOrder(Cas(lock, held.word(), mine.word()));
  if (old != held.word()) co_return Done{};  // another client was faster
  Result<Done> finished = Done{};
  if (at.is_leaf()) {
    finished = co_await FinishLeaf(op, at, mine).Outcome();
  } else {
    finished = co_await FinishInner(op, at).Outcome();
    if (finished.ok()) locks_.Unlock(op, at);
  }
  if (finished.ok()) co_return Done{};
  // The lock goes back to the dead owner, so that the next client takes it over.
  op.Detach(Order::kInOrder, Cas(lock, mine.word(), held.word()));
  co_return finished.error();
}

Task<Done> Recovery::TakeOverFromDead(Op& op, NodePtr at) {
  const NodeLock held(co_await op.InOrder(Read<uint64_t>(table_.At(at) + kLockOffset)));
  if (held.free()) co_return Done{};
  const Standing standing = co_await table_.MemberOf(at).StandingOf(op, held.owner());
  if (standing != Standing::kGone) co_return Done{};
  const Result<Done> taken = co_await TakeOver(op, at, held).Outcome();
  if (!taken.ok() && taken.error().code() != ErrorCode::kContended) co_return taken.error();
  co_return Done{};
}

// ---- leaves --------------------------------------------------------------------------------------------

// The lock is held, taken over; it is released.
Task<Done> Recovery::FinishLeaf(Op& op, NodePtr at, NodeLock mine) {
  Leaf leaf;
  co_await op.InOrder(Read(table_.At(at), leaf.header_bytes()),
                      Read(table_.At(at) + pool::kLine, leaf.lines(table_.shape())));
  co_await CompleteMerge(op, at, leaf.header);
  co_await BringToRest(op, at, mine, leaf);
  co_return Done{};
}

// Step 2 of a merge, if the owner died before it. The lock of the leaf is held, taken over.
Task<Done> Recovery::CompleteMerge(Op& op, NodePtr at, Header& header) {
  const NodePtr sibling(header.sibling);
  // A leaf that is dead itself gets no range: the sibling that it had when it died belongs to its heir.
  if (header.heir != 0 && !Mutant(kDeadInherits)) co_return Done{};
  if (sibling.null() || Mutant(kMergeNotCompleted)) co_return Done{};
  const auto next = co_await op.InOrder(Read<Header>(table_.At(sibling)));
  if (NodeInfo(next.info) != NodeInfo::Of(0)) co_return Damaged(sibling, "is not a leaf");
  if (next.heir == 0) co_return Done{};
  if (NodePtr(next.heir) != at) co_return Damaged(sibling, "has another heir than the leaf before it");
  Inherit(header, next);
  co_return Done{};
}

// INVARIANT chime/2. The lock is held, taken over from an owner that may have died at any step; it is
// released. If this client dies on the way too, the next one has less to do.
// INVARIANT chime/14: the count is always raised. A leaf that is at rest may have been split, or have died.
Task<Done> Recovery::BringToRest(Op& op, NodePtr at, NodeLock mine, Leaf& leaf) {
  if (NodeInfo(leaf.header.info) != NodeInfo::Of(0)) co_return Damaged(at, "is not a leaf");
  const bool at_rest = leaf.header.moves % 2 == 0;
  const bool raises = !Mutant(kRaisedIfNotAtRest) || !at_rest;
  Normalize(table_.shape(), leaf);
  // The lines before the header: `moves` is odd until there is nothing left to clear.
  fabric::SmallBatch<3> trip(op, Order::kInOrder);
  trip.Add(Write(table_.At(at) + pool::kLine, leaf.lines(table_.shape())));
  trip.Add(Write(table_.At(at) + kUnlockedOffset, BytesBehindLock(leaf.header)));
  LockRelease release = locks_.ReleaseOf(at, mine, raises ? Range::kChanged : Range::kSame);
  release.AddTo(trip, op);
  co_await trip;
  co_return Done{};
}

// ---- inner nodes ---------------------------------------------------------------------------------------

// An inner node is valid at any moment (chime/7): only merges are finished. The lock is held, taken over; it
// stays held.
Task<Done> Recovery::FinishInner(Op& op, NodePtr at) {
  InnerImage image;
  const DecodedInner decoded = co_await inner_nodes_.ReadAtRest(op, at, image);
  // A node that is dead itself gets no range, and another node has its children.
  if (image.dead()) co_return Done{};
  co_await CompleteInnerMerge(op, at, image, decoded);
  co_await ClearDeadChildren(op, at, image, decoded);
  co_return Done{};
}

// Steps 2 and 3 of a merge of inner nodes, if the owner died before them. The slot is the one that the owner
// has chosen, because nothing else has changed: so nothing of what it may have written is left behind.
Task<Done> Recovery::CompleteInnerMerge(Op& op, NodePtr at, InnerImage& image, const DecodedInner& decoded) {
  const NodePtr sibling(image.header.sibling);
  if (sibling.null() || Mutant(kInnerNotCompleted)) co_return Done{};
  const auto next = co_await op.InOrder(Read<Header>(table_.At(sibling)));
  if (NodeInfo(next.info) != NodeInfo::Of(at.level())) co_return Damaged(sibling, "is not what it should be");
  if (next.heir == 0) co_return Done{};
  if (NodePtr(next.heir) != at) co_return Damaged(sibling, "has another heir than the node before it");
  InnerImage dead;
  const DecodedInner left_behind = co_await inner_nodes_.ReadAtRest(op, sibling, dead);
  const size_t slot = FirstFreeSlot(decoded.pivots);
  if (left_behind.pivots.size() != 1 || slot >= table_.shape().fanout)
    co_return Damaged(sibling, "is dead, and has more children than its heir has room for");
  std::array<std::byte, kMostPivotBytes> bytes;
  StorePivot(table_.shape(), bytes.data(), left_behind.pivots[0].raw);
  InheritInner(image.header, dead.header);
  co_await op.InOrder(Write(table_.At(at) + table_.shape().PivotOffset(slot),
                            std::span<const std::byte>(bytes).first(table_.shape().pivot_bytes())),
                      Write(table_.At(at) + kUnlockedOffset, BytesBehindLock(image.header)));
  co_return Done{};
}

// The last steps of a merge, if the owner died before them: the parent forgets a dead leaf or inner node.
Task<Done> Recovery::ClearDeadChildren(Op& op, NodePtr at, InnerImage& image, const DecodedInner& decoded) {
  const std::vector<Header> headers = co_await leaves_.ReadHeaders(op, decoded.pivots);
  // The first child never dies.
  for (size_t i = 1; i < decoded.pivots.size(); ++i) {
    if (headers[i].heir == 0 || Mutant(kDeadChildKept)) continue;
    co_await ClearDeadChild(op, at, image, decoded.pivots[i], NodePtr(headers[i].heir));
  }
  co_return Done{};
}

Task<Done> Recovery::ClearDeadChild(Op& op, NodePtr at, InnerImage& image, const Pivot& pivot, NodePtr heir) {
  const pool::PoolClient::Pin pin = table_.pool.Begin();
  const NodePtr child = pivot.raw.child;
  const auto before = co_await op.InOrder(Read<Header>(table_.At(heir)));
  if (NodePtr(before.sibling) == child) co_await locks_.AwaitUnlocked(op, heir);
  const bool with_separator = child.is_leaf() && pivot.raw.ref.in_block();
  uint64_t separator_bytes = 0;
  if (with_separator) separator_bytes = co_await table_.SizeOf(op, pivot.raw.ref.block());
  if (!child.is_leaf()) {
    // INVARIANT chime/12
    image.header.moves += 1;
    co_await op.InOrder(Write(table_.At(at) + kUnlockedOffset, BytesBehindLock(image.header)));
  }
  co_await op.InOrder(inner_nodes_.ClearPivotVerb(at, pivot.slot));
  co_await root_.RaiseMerges(op);
  if (child.is_leaf()) {
    RetireLeaf(table_, child, pivot.raw.ref, separator_bytes, pin);
  } else {
    RetireInner(table_, child, pin);
  }
  co_return Done{};
}

void RetireInner(const TableContext& table, NodePtr node, const pool::PoolClient::Pin& pin) {
  const FarAddr at = table.At(node);
  table.pool.allocator(at.node).Retire(at, table.shape().inner_bytes(), pin.epoch(at.node));
}

void RetireLeaf(const TableContext& table, NodePtr leaf, BoundRef separator, uint64_t separator_bytes,
                const pool::PoolClient::Pin& pin) {
  const FarAddr at = table.At(leaf);
  table.pool.allocator(at.node).Retire(at, table.shape().leaf_bytes(), pin.epoch(at.node));
  if (!separator.in_block()) return;
  const FarAddr separator_at = table.At(separator.block());
  table.pool.allocator(separator_at.node).Retire(separator_at, separator_bytes, pin.epoch(separator_at.node));
}

}  // namespace farside::index::chime
