#include "tests/engines/kit/lock_scenarios.h"

#include <optional>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "check/exhaustive/actor.h"
#include "check/exhaustive/explorer.h"
#include "fabric/op.h"
#include "index/kit/lock_release.h"

namespace farside::index {
namespace {

using check::Actor;
using check::Outcome;
using fabric::Cas;
using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Order;
using fabric::Read;

constexpr FarAddr kLock(NodeId{0}, 0);
constexpr FarAddr kCounter(NodeId{0}, fabric::kLineBytes);
constexpr int kAttempts = 3;

// The trip that releases the lock of this name.
Task<Outcome> Raise(Op& op, uint64_t mine, uint64_t seen) {
  const uint64_t sum = seen + 1;
  fabric::SmallBatch<2> trip(op, Order::kInOrder);
  trip.Add(fabric::WriteObject(kCounter, sum));
  LockRelease release(kLock, mine);
  release.AddTo(trip, op);
  co_await trip;
  if (release.WasLost(trip)) co_return Error(ErrorCode::kOutcomeUnknown, "the lock was lost");
  co_return Outcome(check::Counted{sum});
}

Task<Outcome> Increment(Actor& self, bool takes_over) {
  Op op(self.client(), fabric::OpKind::kUpdate);
  const uint64_t mine = Number(self.client().id());
  for (int attempt = 1; attempt <= kAttempts; ++attempt) {
    const auto [held, seen] = co_await op.InOrder(Cas(kLock, 0, mine), Read<uint64_t>(kCounter));
    if (held == 0) {
      Outcome raised = co_await Raise(op, mine, seen);
      co_return std::move(raised);
    }
    if (!takes_over || attempt != kAttempts) continue;
    co_await op.InOrder(fabric::FenceVerb(NodeId{0}, static_cast<fabric::ClientId>(held)));
    const auto [old, left] = co_await op.InOrder(Cas(kLock, held, mine), Read<uint64_t>(kCounter));
    if (old != held) break;
    Outcome raised = co_await Raise(op, mine, left);
    co_return std::move(raised);
  }
  co_return Error(ErrorCode::kContended, "others had the lock");
}

Task<Done> Increments(Actor& self, int times, bool takes_over) {
  for (int i = 0; i < times; ++i) {
    const Result<Done> ended =
        co_await check::Recorded(self, check::Call::Increment("n"), Increment(self, takes_over)).Outcome();
    if (!ended.ok() && ended.error().code() != ErrorCode::kContended) co_return ended.error();
  }
  co_return Done{};
}

check::Participant Incrementing(int times, bool takes_over) {
  return {.program = [=](Actor& self) { return Increments(self, times, takes_over); }};
}

std::string Explored(bool stores_back, std::vector<check::Participant> participants) {
  check::Scenario scenario;
  scenario.region_bytes = 2 * fabric::kLineBytes;
  scenario.freedoms.store_back_failed_cas = stores_back;
  scenario.participants = std::move(participants);
  scenario.final_check = [](std::span<const std::byte> region) -> std::optional<std::string> {
    if (LoadU64(region.data()) == 0) return std::nullopt;
    return "the lock is held in the end";
  };
  const check::Exploration found = check::Explore(scenario);
  return found.conclusion == check::Conclusion::kNothing ? "" : found.ToString();
}

}  // namespace

std::string CounterUnderALock(bool stores_back) {
  return Explored(stores_back, {Incrementing(2, false), Incrementing(1, false)});
}

std::string CounterUnderALockThatIsTakenOver(bool stores_back) {
  return Explored(stores_back, {Incrementing(2, false), Incrementing(1, false), Incrementing(1, true)});
}

}  // namespace farside::index
