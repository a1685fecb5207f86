// Locks of nodes, and what becomes of those whose owner died.
#include <utility>

#include "index/chime/chime.h"
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

namespace {

// A holder lets go after a trip or two. Only if it does not is it worth a trip to ask whether it lives.
constexpr int kAttemptsUntilAsking = 3;
// Who has tried so often looks before it tries again: a CAS that fails keeps others from the word, and first of all the
// holder, who wants to let go; and there may be hundreds who wait.
constexpr int kAttemptsUntilLooking = 8;
// So long a part of a lease may others wait for the pin of somebody who waits for a lock (chime/10).
constexpr int kPartOfLease = 16;
constexpr int kMostAttempts = 100'000;

}  // namespace

uint64_t Table::LockedBySelf(NodePtr at) const {
  return LockWord::HeldBy(pool_.member(nodes_[at.node()]).self()).word();
}

Task<Done> Table::Lock(Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads) {
  if (at.null() || !IsOnNodes(at.word(), nodes_)) co_return Damaged(at, "is on no node of the table");
  const FarAddr lock = At(at) + kLockOffset;
  pool::Membership& member = pool_.member(lock.node);
  const Nanos lease = member.options().lease;
  const Nanos longest = Mutant(kWaitsWithPin) ? RetryPolicy::kMostLeases * lease : lease / kPartOfLease;
  Nanos began = op.client().Now();
  Nanos waited{0};
  uint64_t last = 0;  // who had it the last time
  // It asks before it gives up, however short the lease is.
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    if (attempt > kAttemptsUntilAsking && waited >= longest) break;
    uint64_t held = 0;
    if (attempt >= kAttemptsUntilLooking) held = co_await op.InOrder(Read<uint64_t>(lock));
    if (held == 0) held = co_await TryLock(op, at, reads);
    if (held == 0) co_return Done{};
    op.CountRetry();

    // A lock that has changed hands is in living ones.
    const bool is_same = held == std::exchange(last, held);
    if (attempt >= kAttemptsUntilAsking && is_same) {
      const Standing standing = co_await member.StandingOf(op, LockWord(held).owner());
      if ((standing == Standing::kGone && !Mutant(kNoTakeover)) || Mutant(kLockBroken)) {
        co_await TakeOver(op, at, held);
        // Somebody else may have been faster; that is not what it has waited for.
        began = op.client().Now();
        waited = Nanos{0};
        continue;
      }
    }
    waited = op.client().Now() - began;
    // There are others who want the lock, and who comes back late finds it taken again.
    co_await op.Pause(RetryPolicy::PauseAfter(waited, options_.backoff));
  }
  co_return Contended("a node of the tree is locked by others");
}

// CAS, READ keep their order: what is read is as it is under the lock, if the CAS took it.
Task<uint64_t> Table::TryLock(Op& op, NodePtr at, std::span<const fabric::ReadIntoVerb> reads) {
  const bool apart = options_.lock_read == LockRead::kApart;
  fabric::SmallBatch<4> trip(op, Order::kInOrder);
  trip.Add(Cas(At(at) + kLockOffset, 0, LockedBySelf(at)));
  for (size_t i = 0; i < reads.size() && !apart; ++i) trip.Add(reads[i]);
  co_await trip;
  if (trip.Old(0) != 0 || !apart || reads.empty()) co_return trip.Old(0);
  const Result<Done> read = co_await ReadAll(op, reads).Outcome();
  if (read.ok()) co_return uint64_t{0};
  Unlock(op, at);
  co_return read.error();
}

Task<Done> Table::ReadAll(Op& op, std::span<const fabric::ReadIntoVerb> reads) {
  fabric::SmallBatch<3> trip(op, Order::kInOrder);
  for (const fabric::ReadIntoVerb& read : reads) trip.Add(read);
  co_await trip;
  co_return Done{};
}

// Nobody waits for it: the client's epoch does (pool/1).
void Table::Unlock(Op& op, NodePtr at) {
  const FarAddr lock = At(at) + kLockOffset;
  if (Mutant(kUnlockByWrite)) return op.Detach(Order::kInOrder, fabric::WriteObject(lock, uint64_t{0}));
  op.Detach(Order::kInOrder, Cas(lock, LockedBySelf(at), 0));
}

// From an owner that is gone: nothing of it can land any more. An inner node above the parents of leaves is whole at any time
// (chime/7).
Task<Done> Table::TakeOver(Op& op, NodePtr at, uint64_t held) {
  const FarAddr lock = At(at) + kLockOffset;
  if (at.level() > 1 || (at.is_leaf() && Mutant(kNotNormalized))) {
    co_await op.InOrder(Cas(lock, held, 0));
    co_return Done{};
  }
  const uint64_t mine = LockedBySelf(at);
  const auto old = co_await op.InOrder(Cas(lock, held, mine));
  if (old != held) co_return Done{};  // somebody else was faster
  Result<Done> finished = Done{};
  if (at.is_leaf()) {
    finished = co_await FinishLeaf(op, at).Outcome();
  } else {
    finished = co_await ClearDeadChildren(op, at).Outcome();
    if (finished.ok()) Unlock(op, at);
  }
  if (finished.ok()) co_return Done{};
  // What could not be done waits for somebody else under the name of the dead.
  op.Detach(Order::kInOrder, Cas(lock, mine, held));
  co_return finished.error();
}

// The lock is held, taken over; it is released.
Task<Done> Table::FinishLeaf(Op& op, NodePtr at) {
  Leaf leaf;
  co_await op.InOrder(Read(At(at), leaf.header_bytes()), Read(At(at) + pool::kLine, leaf.lines(shape())));
  co_await CompleteAbsorption(op, at, leaf.header);
  co_await BringToRest(op, at, leaf);
  co_return Done{};
}

// INVARIANT chime/2. The lock is held, taken over from somebody who may have died at any point; it is released. If this client
// dies on the way too, there is less to do for the next one.
Task<Done> Table::BringToRest(Op& op, NodePtr at, Leaf& leaf) {
  if (NodeInfo(leaf.header.info) != NodeInfo::Of(0)) co_return Damaged(at, "is not a leaf");
  Normalize(shape(), leaf);
  const std::span<const std::byte> header = leaf.header_bytes().subspan(kUnlockedOffset);
  const uint64_t mine = LockedBySelf(at);
  // The lines before the header: `moves` is odd until there is nothing left to clear.
  co_await op.InOrder(Write(At(at) + pool::kLine, leaf.lines(shape())),
                      Write(At(at) + kUnlockedOffset, header), Cas(At(at) + kLockOffset, mine, 0));
  co_return Done{};
}

Task<Done> Table::AwaitUnlocked(Op& op, NodePtr at, Waits waits) {
  const Nanos lease = pool_.member(nodes_.front()).options().lease;
  const Nanos began = op.client().Now();
  Result<Done> locked = co_await Lock(op, at, {}).Outcome();
  while (waits == Waits::kLong && !locked.ok() && locked.error().code() == ErrorCode::kContended &&
         op.client().Now() - began < RetryPolicy::kMostLeases * lease) {
    co_await op.Pause(lease / RetryPolicy::kPausesPerLease);
    locked = co_await Lock(op, at, {}).Outcome();
  }
  if (!locked.ok()) co_return locked.error();
  Unlock(op, at);
  co_return Done{};
}

}  // namespace farside::index::chime
