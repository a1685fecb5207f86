#include "fabric/memory/direct_client.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace farside::fabric::memory {
namespace {

// In a trip of many verbs, cache lines are asked for this many verbs ahead: so many that they have come when
// it is their turn, and so few that the processor can have all of them on their way.
constexpr size_t kVerbsAhead = 8;
// A pause that is shorter than what it takes to sleep and to wake is not slept through.
constexpr Nanos kShortestSleep = std::chrono::microseconds(20);
// The session may have other clients to poll, and a daemon that ends says nothing.
constexpr Nanos kLongestSleep = std::chrono::milliseconds(5);

bool OnlyReads(std::span<const Verb> verbs) {
  return std::all_of(verbs.begin(), verbs.end(),
                     [](const Verb& verb) { return verb.kind == VerbKind::kRead; });
}
bool AnyMutates(std::span<const Verb> verbs) {
  return std::any_of(verbs.begin(), verbs.end(), [](const Verb& verb) { return Mutates(verb.kind); });
}

}  // namespace

DirectClient::~DirectClient() {
  assert(trips_.empty() && timers_.empty() && "tasks that wait for a client must not outlive it");
}

bool DirectClient::Start(Trip& trip) {
  if (broken_.has_value()) [[unlikely]] {
    trip.Fail(*broken_);
    return true;
  }
  for (const Verb& verb : trip.verbs) {
    if (!IsInBounds(verb, region_bytes_)) [[unlikely]] {
      trip.Fail(*CheckBounds(trip.verbs, region_bytes_));
      return true;
    }
  }
  const bool later = concurrency() > 1;
  if (later || trip.verbs.size() > kVerbsAhead) {
    for (const Verb& verb : trip.verbs.first(std::min(trip.verbs.size(), kVerbsAhead))) Prefetch(verb);
  }
  if (!later) {
    Execute(trip);
    return true;
  }
  trips_.Push(trip);
  return false;
}

void DirectClient::Detach(Order order, std::span<const Verb> verbs) {
  // A child destroys tasks of its parent that hold locks.
  if (forked()) return;
  if (CheckBounds(verbs, region_bytes_)) return;  // like every error of verbs that no coroutine awaits
  detached_.assign(verbs.begin(), verbs.end());
  Trip trip;
  trip.order = order;
  trip.verbs = detached_;
  Execute(trip);
}

bool DirectClient::Poll() {
  if (forked()) Break(ForkGuard::Refusal());
  const bool had_trips = !trips_.empty();
  // One round: what the resumed operations start now has its cache lines on the way, and waits its turn.
  for (size_t round = trips_.size(); round > 0 && !trips_.empty(); --round) {
    Trip& oldest = trips_.Pop();
    Execute(oldest);
    oldest.Resume();
    // The task may have forked, and this may be the child.
    if (forked()) Break(ForkGuard::Refusal());
  }
  if (timers_.empty()) return had_trips;
  if (!timers_.ResumeDue(Now()) && !had_trips) Rest();
  return true;
}

// Nothing happens before the first timer is due.
void DirectClient::Rest() const {
  const Nanos left = timers_.first_due() - Now();
  if (!real_time_ || left < kShortestSleep) return std::this_thread::yield();
  std::this_thread::sleep_for(std::min(left, kLongestSleep));
}

void DirectClient::Execute(Trip& trip) {
  if (broken_.has_value()) [[unlikely]]
    return trip.Fail(*broken_);
  std::optional<Error> error = OnlyReads(trip.verbs) ? ExecuteReads(trip.verbs) : ExecuteChanges(trip.verbs);
  if (error.has_value()) [[unlikely]]
    return trip.Fail(std::move(*error));
  trip.Succeed();
}

std::optional<Error> DirectClient::ExecuteReads(std::span<Verb> verbs) {
  for (size_t i = 0; i < verbs.size(); ++i) {
    Verb& verb = verbs[i];
    if (i + kVerbsAhead < verbs.size()) Prefetch(verbs[i + kVerbsAhead]);
    const Reach& reach = ReachOf(verb);
    if (reach.gate->closed()) [[unlikely]]
      return Closed(verb.at.node);
    if (!reach.memory->Read(verb.at.offset, {verb.into, verb.size})) [[unlikely]]
      return LostAt(verb, verbs);
  }
  return std::nullopt;
}

std::optional<Error> DirectClient::ExecuteChanges(std::span<Verb> verbs) {
  std::optional<Error> error;
  const std::optional<NodeId> closed = EnterGates(verbs);
  if (!closed.has_value()) error = ExecuteInsideGates(verbs);
  LeaveGates(verbs);
  if (closed.has_value()) error = Closed(*closed);
  return error;
}

std::optional<Error> DirectClient::ExecuteInsideGates(std::span<Verb> verbs) {
  for (size_t i = 0; i < verbs.size(); ++i) {
    Verb& verb = verbs[i];
    if (verb.kind == VerbKind::kCall) {
      if (std::optional<Error> error = Call(verb)) return error;
    } else if (verb.kind == VerbKind::kFence) {
      if (std::optional<Error> error = ExecuteFence(verbs, i)) return error;
    } else if (!ReachOf(verb).memory->Execute(verb)) {
      return LostAt(verb, verbs);
    }
  }
  return std::nullopt;
}

// gate/2: outside of its own gates. This client may have been fenced itself when it comes back.
std::optional<Error> DirectClient::ExecuteFence(std::span<Verb> verbs, size_t at) {
  const std::span<const Verb> done = verbs.first(at);
  LeaveGates(verbs);
  if (std::optional<Error> error = Fence(verbs[at])) {
    return AnyMutates(done) ? LostCompletion(done, error->message()) : std::move(*error);
  }
  const std::optional<NodeId> closed = EnterGates(verbs);
  if (!closed.has_value() || at + 1 == verbs.size()) return std::nullopt;
  if (AnyMutates(done)) return LostCompletion(done, "the client was fenced in the middle of a trip");
  LeaveGates(verbs);
  return Closed(*closed);
}

std::optional<NodeId> DirectClient::EnterGates(std::span<const Verb> verbs) {
  std::optional<NodeId> closed;
  for (const Verb& verb : verbs) {
    Gate& gate = *ReachOf(verb).gate;
    if (!gate.inside() && !gate.Enter()) closed = verb.at.node;
  }
  return closed;
}

void DirectClient::LeaveGates(std::span<const Verb> verbs) {
  for (const Verb& verb : verbs) {
    Gate& gate = *ReachOf(verb).gate;
    if (gate.inside()) gate.Leave();
  }
}

Error DirectClient::LostAt(const Verb& verb, std::span<const Verb> verbs) {
  Break(Stuck(verb.at.node));
  return LostCompletion(verbs, broken_->message());
}

void DirectClient::Break(Error error) {
  if (!broken_.has_value()) broken_.emplace(std::move(error));
}

Error DirectClient::Fenced() const {
  return Error(ErrorCode::kFenced,
               fmt::format("client {} was fenced: another client took it for dead; connect "
                           "again as a new client",
                           Number(id())));
}

}  // namespace farside::fabric::memory
