#include "index/chime/recovery.h"

#include <vector>

#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "pool/members/membership.h"

namespace farside::index::chime {

using fabric::Cas;
using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::Write;
using pool::LockWord;
using pool::Standing;

// An inner node above the parents of leaves is valid at any moment (chime/7), so its lock is just released.
Task<Done> Recovery::TakeOver(Op& op, NodePtr at, uint64_t held) {
  const FarAddr lock = table_.At(at) + kLockOffset;
  if (at.level() > 1 || (at.is_leaf() && Mutant(kNotNormalized))) {
    co_await op.InOrder(Cas(lock, held, 0));
    co_return Done{};
  }
  const uint64_t mine = locks_.HeldBySelf(at);
  const auto old = co_await op.InOrder(Cas(lock, held, mine));
  if (old != held) co_return Done{};  // another client was faster
  Result<Done> finished = Done{};
  if (at.is_leaf()) {
    finished = co_await FinishLeaf(op, at).Outcome();
  } else {
    finished = co_await ClearDeadChildren(op, at).Outcome();
    if (finished.ok()) locks_.Unlock(op, at);
  }
  if (finished.ok()) co_return Done{};
  // The lock goes back to the dead owner, so that the next client takes it over.
  op.Detach(Order::kInOrder, Cas(lock, mine, held));
  co_return finished.error();
}

Task<Done> Recovery::TakeOverFromDead(Op& op, NodePtr at) {
  const auto held = co_await op.InOrder(Read<uint64_t>(table_.At(at) + kLockOffset));
  if (held == 0) co_return Done{};
  const Standing standing = co_await table_.MemberOf(at).StandingOf(op, LockWord(held).owner());
  if (standing != Standing::kGone) co_return Done{};
  const Result<Done> taken = co_await TakeOver(op, at, held).Outcome();
  if (!taken.ok() && taken.error().code() != ErrorCode::kContended) co_return taken.error();
  co_return Done{};
}

// ---- leaves --------------------------------------------------------------------------------------------

// The lock is held, taken over; it is released.
Task<Done> Recovery::FinishLeaf(Op& op, NodePtr at) {
  Leaf leaf;
  co_await op.InOrder(Read(table_.At(at), leaf.header_bytes()),
                      Read(table_.At(at) + pool::kLine, leaf.lines(table_.shape())));
  co_await CompleteMerge(op, at, leaf.header);
  co_await BringToRest(op, at, leaf);
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
Task<Done> Recovery::BringToRest(Op& op, NodePtr at, Leaf& leaf) {
  if (NodeInfo(leaf.header.info) != NodeInfo::Of(0)) co_return Damaged(at, "is not a leaf");
  Normalize(table_.shape(), leaf);
  // The lines before the header: `moves` is odd until there is nothing left to clear.
  co_await op.InOrder(Write(table_.At(at) + pool::kLine, leaf.lines(table_.shape())),
                      Write(table_.At(at) + kUnlockedOffset, BytesBehindLock(leaf.header)),
                      locks_.UnlockVerb(at));
  co_return Done{};
}

// ---- parents of leaves ---------------------------------------------------------------------------------

// Steps 3 to 5 of a merge, if the owner died before them. The lock of the parent is held, taken over; it
// stays held.
Task<Done> Recovery::ClearDeadChildren(Op& op, NodePtr at) {
  const pool::PoolClient::Pin pin = table_.pool.Begin();
  InnerImage image = inner_nodes_.NewImage();
  const auto [header, lines] = inner_nodes_.ReadsOf(at, image);
  co_await op.InOrder(header, lines);
  const DecodedInner decoded = co_await inner_nodes_.Decode(op, at, image);
  const std::vector<Header> headers = co_await leaves_.ReadHeaders(op, decoded.pivots);
  for (size_t i = 1; i < decoded.pivots.size(); ++i) {
    if (headers[i].heir == 0 || Mutant(kDeadChildKept)) continue;
    const Pivot& pivot = decoded.pivots[i];
    const NodePtr child = pivot.raw.child;
    const NodePtr heir(headers[i].heir);
    const auto before = co_await op.InOrder(Read<Header>(table_.At(heir)));
    if (NodePtr(before.sibling) == child) co_await locks_.AwaitUnlocked(op, heir);
    uint64_t separator_bytes = 0;
    if (pivot.raw.ref.in_block()) separator_bytes = co_await table_.SizeOf(op, pivot.raw.ref.block());
    co_await op.InOrder(inner_nodes_.ClearPivotVerb(at, pivot.slot));
    co_await root_.RaiseMerges(op);
    RetireLeaf(table_, child, pivot.raw.ref, separator_bytes, pin);
  }
  co_return Done{};
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
