#include "pool/members/lock.h"

#include <fmt/format.h>

#include <algorithm>

namespace farside::pool {

using fabric::Cas;
using fabric::ForMaintenance;
using fabric::Op;

namespace {

constexpr int kMostAttempts = 100'000;
constexpr int kPausesPerLease = 64;

}  // namespace

Task<Acquired> AcquireLock(Op& op, Membership& member, uint64_t offset) {
  const uint64_t mine = LockWord::HeldBy(member.self()).word();
  const Nanos longest_pause = std::max(member.options().lease / kPausesPerLease, Nanos(1));
  Nanos pause = std::min(Nanos(1000), longest_pause);
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const uint64_t found = co_await op.InOrder(ForMaintenance(Cas(member.At(offset), 0, mine)));
    if (found == 0) co_return Acquired::kFree;
    op.CountRetry();

    // INVARIANT pool/2: an owner that is gone has been fenced, so nothing of it can come after this CAS.
    const Standing standing = co_await member.StandingOf(op, LockWord(found).owner());
    if (standing == Standing::kGone) {
      const uint64_t old = co_await op.InOrder(ForMaintenance(Cas(member.At(offset), found, mine)));
      if (old == found) co_return Acquired::kTakenOver;
      continue;
    }
    co_await op.Pause(pause);
    pause = std::min(pause * 2, longest_pause);
  }
  co_return Error(ErrorCode::kContended,
                  fmt::format("the lock at {:#x} of node {} was held by others for {} attempts; "
                              "retry later",
                              offset, Index(member.node()), kMostAttempts));
}

Task<Done> ReleaseLock(Op& op, Membership& member, uint64_t offset) {
  const uint64_t mine = LockWord::HeldBy(member.self()).word();
  const uint64_t old = co_await op.InOrder(ForMaintenance(Cas(member.At(offset), mine, 0)));
  if (old != mine) {
    co_return Error(ErrorCode::kFenced,
                    "the lock was taken from this client, which was taken for dead; reconnect");
  }
  co_return Done{};
}

}  // namespace farside::pool
