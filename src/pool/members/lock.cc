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
// While a node is out of reach no client can be fenced: the lock of a dead client stays until the node is
// back, and that may be never. A client that only sleeps may wake, so it is waited for.
constexpr int kMostLeasesWithoutANode = 2;

bool ReachesAll(const fabric::Client& client) {
  for (size_t node = 0; node < client.region_bytes().size(); ++node) {
    if (!client.Reaches(static_cast<fabric::NodeId>(node))) return false;
  }
  return true;
}

}  // namespace

Task<Acquired> AcquireLock(Op& op, Membership& member, uint64_t offset) {
  const uint64_t mine = LockWord::HeldBy(member.self()).word();
  const Nanos longest_pause = std::max(member.options().lease / kPausesPerLease, Nanos(1));
  Nanos pause = std::min(Nanos(1000), longest_pause);
  const Nanos began = member.client().Now();
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
    const Nanos waited = member.client().Now() - began;
    if (waited >= kMostLeasesWithoutANode * member.options().lease && !ReachesAll(member.client())) {
      co_return Error(ErrorCode::kUnavailable,
                      fmt::format("the lock at {:#x} of node {} is held by a client that may be dead, and "
                                  "that is not certain while a memory node is out of reach; try again when "
                                  "all nodes are there",
                                  offset, Index(member.node())));
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
