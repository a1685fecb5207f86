#include "index/chime/node_locks.h"

#include <utility>

#include "index/chime/errors.h"
#include "index/chime/mutants.h"
#include "index/chime/recovery.h"
#include "index/kit/retry_policy.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using pool::Standing;

namespace {

// A living owner releases its lock after a trip or two. Asking whether it lives costs a trip, so not before
// that.
constexpr int kAttemptsUntilAsking = 3;
// From then on a waiting client READs the word before it tries: a CAS that fails delays all others, the
// owner's unlock included, and hundreds of clients may wait.
constexpr int kAttemptsUntilLooking = 8;
// The part of a lease for which a client may wait with a pin: other clients wait for that pin (chime/10).
constexpr int kPartOfLease = 16;
constexpr int kMostAttempts = 100'000;
// READs of a leaf that meet entries on the move, until the client waits for the lock of the leaf.
constexpr int kTornUntilLock = 4;

}  // namespace

// Of a leaf, all bits of the owner and no others: its lock is taken whatever the count is.
fabric::AtomicVerb NodeLocks::LockVerb(NodePtr at, NodeLock hint) const {
  if (!at.is_leaf()) return fabric::Cas(LockAt(at), 0, HeldBySelf(at).word());
  constexpr uint64_t kOwner = NodeLock::OwnerBits::kMask;
  return fabric::MaskedCas(LockAt(at), hint.word(), 0, kOwner, HeldBySelf(at).word(), kOwner);
}

Task<NodeLock> NodeLocks::Lock(Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads,
                               NodeLock hint) {
  if (at.null() || !table_.Has(at)) co_return Damaged(at, "is on no node of the table");
  pool::Membership& member = table_.MemberOf(at);
  const Nanos lease = member.options().lease;
  const Nanos longest = Mutant(kWaitsWithPin) ? RetryPolicy::kMostLeases * lease : lease / kPartOfLease;
  Nanos began = op.client().Now();
  Nanos waited{0};
  NodeLock last;  // the word at the attempt before
  // However short the lease is, it asks about the owner before it gives up.
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (attempt > kAttemptsUntilAsking && waited >= longest) break;
    if (!left_behind_.empty()) ReleaseLeftBehind(op);
    NodeLock held = hint.Freed();
    if (attempt >= kAttemptsUntilLooking) held = NodeLock(co_await op.InOrder(Read<uint64_t>(LockAt(at))));
    if (held.free()) held = co_await TryLock(op, at, reads, held);
    if (held.free()) co_return HeldBySelf(at, held);
    op.CountRetry();

    // If the owner has changed, the new one is alive.
    const bool is_same = held == std::exchange(last, held);
    if (attempt >= kAttemptsUntilAsking && is_same) {
      if (held.owner() == member.self()) {
        const bool own = co_await IsOwnByMistake(op, at);
        if (own) co_return LockedByMistake();
      }
      const Standing standing = co_await member.StandingOf(op, held.owner());
      if ((standing == Standing::kGone && !Mutant(kNoTakeover)) || Mutant(kLockBroken)) {
        co_await recovery_.TakeOver(op, at, held);
        // If another client takes the lock first, that wait begins now.
        began = op.client().Now();
        waited = Nanos{0};
        continue;
      }
    }
    waited = op.client().Now() - began;
    // Pauses stay short: other clients want the lock, and after a long pause it is taken again.
    co_await op.Pause(RetryPolicy::PauseAfter(waited, table_.options.backoff));
  }
  co_return Contended("a node of the tree is locked by others");
}

// CAS, READ keep their order: if the CAS took the lock, the READs were done under it.
Task<NodeLock> NodeLocks::TryLock(Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads,
                                  NodeLock hint) {
  const bool apart = table_.options.lock_read == LockRead::kApart;
  fabric::SmallBatch<4> trip(op, Order::kInOrder);
  trip.Add(LockVerb(at, hint));
  for (size_t i = 0; i < reads.size() && !apart; ++i) trip.Add(reads[i]);
  co_await trip;
  const NodeLock old(trip.Old(0));
  if (!old.free() || !apart || reads.empty()) co_return old;
  const Result<Done> read = co_await ReadAll(op, reads).Outcome();
  if (read.ok()) co_return old;
  Unlock(op, at, HeldBySelf(at, old));
  co_return read.error();
}

// CAS, READ keep their order.
Task<bool> NodeLocks::TryLockTwo(Op& op, NodePtr first, std::span<const fabric::ReadIntoVerb> of_first,
                                 NodePtr second, std::span<const fabric::ReadIntoVerb> of_second) {
  if (first.node() != second.node()) {
    const bool locked = co_await TryLockOnTwoNodes(op, first, of_first, second, of_second);
    co_return locked;
  }
  fabric::Batch trip(op, Order::kInOrder);
  const size_t lock_first = trip.Add(LockVerb(first));
  for (const fabric::ReadIntoVerb& read : of_first) trip.Add(read);
  const size_t lock_second = trip.Add(LockVerb(second));
  for (const fabric::ReadIntoVerb& read : of_second) trip.Add(read);
  co_await trip;
  const NodeLock old_first(trip.Old(lock_first));
  const NodeLock old_second(trip.Old(lock_second));
  if (old_first.free() && old_second.free()) co_return true;
  if (old_first.free()) Unlock(op, first, HeldBySelf(first, old_first));
  if (old_second.free()) Unlock(op, second, HeldBySelf(second, old_second));
  co_return false;
}

Task<bool> NodeLocks::TryLockOnTwoNodes(Op& op, NodePtr first, std::span<const fabric::ReadIntoVerb> of_first,
                                        NodePtr second, std::span<const fabric::ReadIntoVerb> of_second) {
  const NodeLock old_first = co_await TryLock(op, first, of_first);
  if (!old_first.free()) co_return false;
  const Result<NodeLock> second_held = co_await TryLock(op, second, of_second).Outcome();
  if (second_held.ok() && second_held->free()) co_return true;
  // Also if that memory node is out of reach: nothing was changed, and this client lives on, so the lock
  // would stay.
  Unlock(op, first, HeldBySelf(first, old_first));
  if (!second_held.ok()) co_return second_held.error();
  co_return false;
}

Task<Done> NodeLocks::ReadAll(Op& op, std::span<const fabric::ReadIntoVerb> reads) {
  fabric::SmallBatch<3> trip(op, Order::kInOrder);
  for (const fabric::ReadIntoVerb& read : reads) trip.Add(read);
  co_await trip;
  co_return Done{};
}

// INVARIANT lock/1: in order behind the last change.
void NodeLocks::LeaveBehind(Op& op, NodePtr at, NodeLock held) {
  left_behind_.push_back({.at = at, .held = held, .posted = op.client().trips_posted()});
  ReleaseLeftBehind(op);
}

void NodeLocks::ReleaseLeftBehind(Op& op) {
  std::erase_if(left_behind_, [&](const LeftBehind& left) {
    if (op.client().HasUnawaitedOfFirst(left.posted)) return false;
    Unlock(op, left.at, left.held);
    return true;
  });
}

Task<Done> NodeLocks::AwaitUnlocked(Op& op, NodePtr at, LockWait wait) {
  const Nanos lease = table_.pool.member(table_.nodes.first()).options().lease;
  const Nanos began = op.client().Now();
  Result<NodeLock> locked = co_await Lock(op, at, {}).Outcome();
  while (wait == LockWait::kLong && !locked.ok() && locked.error().code() == ErrorCode::kContended &&
         op.client().Now() - began < RetryPolicy::kMostLeases * lease) {
    co_await op.Pause(lease / RetryPolicy::kPausesPerLease);
    locked = co_await Lock(op, at, {}).Outcome();
  }
  if (!locked.ok()) co_return locked.error();
  Unlock(op, at, *locked);
  co_return Done{};
}

// The waiting operation does not hold this lock, and only operations with a pin hold locks. An unlock that is
// not awaited may be on its way.
Task<bool> NodeLocks::IsOwnByMistake(Op& op, NodePtr at) {
  if (table_.pool.operations_in_flight() > 1 || op.client().HasUnawaited()) co_return false;
  const auto held = co_await op.InOrder(Read<uint64_t>(LockAt(at)));
  co_return NodeLock(held).owner() == table_.MemberOf(at).self();
}

Task<Done> NodeLocks::AwaitRest(Op& op, NodePtr leaf, TornReads torn, LockWait wait) {
  if (torn.ProveDamage()) co_return Damaged(leaf, "has entries on the move, and no client moves them");
  if (torn.times() % kTornUntilLock != 0) co_return Done{};
  if (table_.pool.read_only()) {
    co_await op.Pause(table_.options.backoff * torn.times());
  } else {
    co_await AwaitUnlocked(op, leaf, wait);
  }
  co_return Done{};
}

}  // namespace farside::index::chime
