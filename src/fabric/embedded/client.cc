#include "fabric/embedded/client.h"

#include <algorithm>
#include <cassert>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace farside::fabric::embedded {
namespace {

bool OnlyReads(std::span<const Verb> verbs) {
  return std::all_of(verbs.begin(), verbs.end(),
                     [](const Verb& verb) { return verb.kind == VerbKind::kRead; });
}

}  // namespace

EmbeddedClient::EmbeddedClient(Shared& shared, GateRegistry::Registration registration)
    : Client(registration.id),
      shared_(shared),
      region_bytes_(shared.region_bytes),
      gate_(std::move(registration.gate)) {}

EmbeddedClient::~EmbeddedClient() {
  assert(trips_.empty() && timers_.empty() && "tasks that wait for a client must not outlive it");
  shared_.gates.Remove(id());
}

bool EmbeddedClient::Start(Trip& trip) {
  if (std::optional<Error> error = CheckBounds(trip.verbs, region_bytes_)) {
    trip.Fail(std::move(*error));
    return true;
  }
  if (concurrency() <= 1) {
    Execute(trip);
    return true;
  }
  for (const Verb& verb : trip.verbs) {
    if (!IsControl(verb.kind)) MemoryOf(verb).Prefetch(verb);
  }
  trips_.Push(trip);
  return false;
}

void EmbeddedClient::Detach(Order order, std::span<const Verb> verbs) {
  if (CheckBounds(verbs, region_bytes_)) return;  // like every error of verbs nobody waits for
  detached_.assign(verbs.begin(), verbs.end());
  Trip trip;
  trip.order = order;
  trip.verbs = detached_;
  Execute(trip);
}

bool EmbeddedClient::Poll() {
  const bool had_trips = !trips_.empty();
  // One round: what the resumed operations start now has its cache lines on the way, and waits its turn.
  for (size_t round = trips_.size(); round > 0 && !trips_.empty(); --round) {
    Trip& oldest = trips_.Pop();
    Execute(oldest);
    oldest.Resume();
  }
  if (timers_.empty()) return had_trips;
  if (!ResumeDueTimers() && !had_trips) std::this_thread::yield();
  return true;
}

bool EmbeddedClient::ResumeDueTimers() {
  const Nanos now = Now();
  bool resumed = false;
  // One round here too: a coroutine may pause for no time at all, again and again.
  for (size_t round = timers_.size(); round > 0; --round) {
    Timer* const due = timers_.PopDue(now);
    if (due == nullptr) break;
    due->waiter.resume();
    resumed = true;
  }
  return resumed;
}

void EmbeddedClient::Execute(Trip& trip) {
  if (OnlyReads(trip.verbs)) {
    // READs take no effect, so no fence has to wait for them: looking at the gate is enough.
    if (gate_->closed()) return trip.Fail(Fenced());
    for (Verb& verb : trip.verbs) MemoryOf(verb).Execute(verb);
    return trip.Succeed();
  }
  std::optional<Error> error = gate_->Enter() ? ExecuteInsideGate(trip.verbs) : Fenced();
  gate_->Leave();
  if (error.has_value()) return trip.Fail(std::move(*error));
  trip.Succeed();
}

std::optional<Error> EmbeddedClient::ExecuteInsideGate(std::span<Verb> verbs) {
  for (size_t i = 0; i < verbs.size(); ++i) {
    Verb& verb = verbs[i];
    if (verb.kind == VerbKind::kCall) {
      if (std::optional<Error> error = ExecuteCall(verb)) return error;
    } else if (verb.kind == VerbKind::kFence) {
      const bool still_open = ExecuteFence(static_cast<ClientId>(verb.desired));
      if (!still_open && i + 1 < verbs.size()) return CutOffAfter(verbs.first(i));
    } else {
      MemoryOf(verb).Execute(verb);
    }
  }
  return std::nullopt;
}

std::optional<Error> EmbeddedClient::ExecuteCall(Verb& verb) {
  Node& node = *shared_.nodes[Index(verb.at.node)];
  const std::string_view request(reinterpret_cast<const char*>(verb.from), verb.size);
  const std::scoped_lock lock(node.cpu());
  Result<std::string> reply = shared_.calls.Handle(verb.call, node.memory(), id(), request);
  if (!reply.ok()) return reply.error();
  *verb.reply = std::move(*reply);
  return std::nullopt;
}

// Cuts a client off from this node, and from all others too: a client that was fenced anywhere is broken for
// good. False: this client has been fenced itself in the meantime.
bool EmbeddedClient::ExecuteFence(ClientId victim) {
  const std::shared_ptr<Gate> gate = shared_.gates.Find(victim);
  if (gate == nullptr) return true;  // it departed, and can do nothing any more
  gate->Close();
  if (gate == gate_) return false;
  gate_->Leave();  // gate/2
  gate->AwaitTurn();
  return gate_->Enter();
}

Error EmbeddedClient::Fenced() const {
  return Error(ErrorCode::kFenced,
               fmt::format("client {} was fenced: somebody took it for dead and cut it off; connect "
                           "again as a new client",
                           Number(id())));
}

Error EmbeddedClient::CutOffAfter(std::span<const Verb> done) const {
  const bool changed =
      std::any_of(done.begin(), done.end(), [](const Verb& verb) { return Mutates(verb.kind); });
  return changed ? LostCompletion(done, "the client was fenced in the middle of a trip") : Fenced();
}

}  // namespace farside::fabric::embedded
