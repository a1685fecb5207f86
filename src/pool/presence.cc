// How a client goes offline and comes back.
//
// Other clients wait for the epoch that a client publishes, however long it does nothing. So a client without
// an operation in flight goes offline: it publishes kOfflineEpoch, and no client waits for it. It still
// beats, and its lease goes on.
//
// Invariants
//   off/1  Offline is published only while the client has no pin, no operation that waits without one, and no
//          verb in flight that no coroutine awaits. The WRITE has ended before the client posts another pulse
//          to that node: if the next one were overtaken, the client would be taken for offline while it is
//          not.
//   off/2  A client comes back by one trip to each node, all at once: [WRITE pulse, READ control line, READ
//          lines of listeners], in this order. No operation begins before all have ended. The pulse has the
//          epoch that the client knew before, however old that is. A client that reclaims needs no second
//          look and no handshake: if its look has missed the WRITE, the WRITE came after the unlinking, and
//          the READs behind it, and all operations, find nothing of what was unlinked.
//   off/3  Trips that go offline and come back add nothing for listeners, and a sync adds only for tables
//          that are known to exist (sync_listener.h).
//   off/4  A look at the registry counts a slot that is offline as the epoch that was known when the look was
//          posted, never as infinity (Membership::ReadRegistry).
//   off/5  A client that is offline may beat, look at the registry, give back what it has retired, and
//          harvest. It comes online to sweep, to leave, and to give up chunks: others rely on the epoch that
//          it holds then.
//   off/6  published_epoch() is never kOfflineEpoch.
#include <algorithm>
#include <array>

#include "pool/client.h"
#include "pool/mutants.h"
#include "pool/scoped_flag.h"

namespace farside::pool {

using fabric::Batch;
using fabric::Faa;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::WriteObject;

namespace {

constexpr Nanos kPause = std::chrono::microseconds(1);
// Pulses that no coroutine awaits land within this many pauses, or the client is as good as cut off.
constexpr int kMostPauses = 1'000'000;
// As many as one round trip answers, the control lines included.
constexpr size_t kReadsPerTrip = fabric::kAnsweredVerbsPerRoundTrip;
constexpr size_t kMostVerbs = fabric::kMaxVerbsPerTrip;

}  // namespace

// A line of a listener.
struct PoolClient::Return {
  Node* node = nullptr;
  std::shared_ptr<SyncListener> listener;
  FarAddr line_at;
  std::array<std::byte, kLine> line{};
};

std::vector<PoolClient::Node*> PoolClient::NodesTakingPart() {
  std::vector<Node*> nodes;
  for (const auto& node : nodes_) {
    if (TakesPart(*node)) nodes.push_back(node.get());
  }
  return nodes;
}

// ---- going offline -----------------------------------------------------------------------------------

bool PoolClient::MayGoOffline() const {
  const bool over_detached = Mutant(kOfflineOverDetached);
  if (client_.HasUnawaited() && !over_detached) return false;
  if (!idle() && !Mutant(kOfflineInOperation)) return false;
  return syncing_ == 0 && !maintaining_;
}

Task<bool> PoolClient::GoOffline(Op& op) {
  if (switching_) co_return false;
  if (!online_) co_return true;
  if (!MayGoOffline()) co_return false;
  const ScopedFlag switching(switching_);
  online_ = false;
  const size_t before = NodesTakingPart().size();
  Result<Done> published = co_await PublishOffline(op).Outcome();
  // A node that is lost on the way takes no part any more.
  if (!published.ok() && NodesTakingPart().size() < before) published = co_await PublishOffline(op).Outcome();
  if (!published.ok()) co_return published.error();
  co_return true;
}

// INVARIANT off/1: awaited.
Task<Done> PoolClient::PublishOffline(Op& op) {
  const std::vector<Node*> nodes = NodesTakingPart();
  std::vector<Pulse> pulses;
  for (Node* node : nodes) {
    pulses.push_back(node->membership.NextPulse(kOfflineEpoch, node->allocator.OldestUnsettled()));
    if (Mutant(kOfflineBirth)) node->published = kOfflineEpoch;
  }
  for (size_t first = 0; first < nodes.size(); first += kMostVerbs / 2) {
    Batch trip(op, Order::kTogether);
    for (size_t i = first; i < std::min(nodes.size(), first + kMostVerbs / 2); ++i) {
      const auto pulse = ForMaintenance(WriteObject(nodes[i]->membership.pulse_at(), pulses[i]));
      if (Mutant(kOfflineNotAwaited)) {
        op.Detach(Order::kInOrder, pulse);
        continue;
      }
      trip.Add(pulse);
      if (!Mutant(kOfflineAdds)) continue;
      for (const auto& listener : nodes[i]->listeners) {
        const SyncRequest request = listener->BeforeSync(listener->MayAdd());
        if (request.add_at != 0)
          trip.Add(ForMaintenance(Faa(nodes[i]->membership.At(request.add_at), request.delta)));
      }
    }
    co_await trip;
  }
  co_return Done{};
}

// A heartbeat. What was retired is stamped, and the control lines are read: news of deaths, and of clients
// that want room. That operations may know the epoch without what listeners know of it does not matter: none
// begins before the client has come back.
Task<Done> PoolClient::SyncOffline(Op& op, bool raise) {
  const ScopedFlag switching(switching_);
  for (auto& node : nodes_) {
    if (!TakesPart(*node)) continue;
    const bool may_raise = raise && !client_.read_only();
    const Result<Done> synced = co_await SyncNode(op, *node, kOfflineEpoch, may_raise).Outcome();
    if (!synced.ok() && TakesPart(*node)) co_return synced.error();
  }
  co_return Done{};
}

// ---- coming back -------------------------------------------------------------------------------------

Task<Done> PoolClient::AwaitSwitch(Op& op) const {
  while (switching_) co_await op.Pause(kPause);
  co_return Done{};
}

// INVARIANT off/1: a coroutine that went offline, or beat, may have been destroyed with its pulse on the way.
Task<Done> PoolClient::AwaitOwnPulses(Op& op) {
  if (Mutant(kOfflineNotAwaited)) co_return Done{};
  for (int pause = 0; client_.HasUnawaited(); ++pause) {
    if (pause == kMostPauses)
      co_return Error(ErrorCode::kUnavailable, "what this client has sent does not arrive; reconnect");
    co_await op.Pause(kPause);
  }
  co_return Done{};
}

Task<Done> PoolClient::ComeOnline(Op& op) {
  while (!online_) {
    if (switching_) {
      co_await AwaitSwitch(op);
      continue;
    }
    const ScopedFlag switching(switching_);
    co_await AwaitOwnPulses(op);
    const size_t before = NodesTakingPart().size();
    Result<Done> published = co_await PublishOnline(op).Outcome();
    if (!published.ok() && NodesTakingPart().size() < before)
      published = co_await PublishOnline(op).Outcome();
    if (!published.ok()) co_return published.error();
    online_ = true;
    NewGeneration();
  }
  co_return Done{};
}

// The lines of all listeners, node by node.
std::vector<PoolClient::Return> PoolClient::Returns() {
  std::vector<Return> returns;
  if (Mutant(kOnlineNoRider)) return returns;
  for (Node* node : NodesTakingPart()) {
    for (const auto& listener : node->listeners) {
      const SyncRequest request = listener->BeforeSync(/*may_add=*/false);
      returns.push_back(
          {.node = node, .listener = listener, .line_at = node->membership.At(request.read_at)});
    }
  }
  return returns;
}

void PoolClient::AddReturn(Op& op, Batch& trip, Node& node, const Pulse& pulse) {
  const bool first_node = &node == nodes_.front().get();
  const auto write = ForMaintenance(WriteObject(node.membership.pulse_at(), pulse));
  if (Mutant(kOnlineReadsFirst) || (!first_node && Mutant(kOnlineOneNode))) return;
  if (!first_node && Mutant(kOnlineBeginsEarly)) return op.Detach(Order::kInOrder, write);
  trip.Add(write);
  if (!Mutant(kOnlineAdds)) return;
  for (const auto& listener : node.listeners) {
    const SyncRequest request = listener->BeforeSync(listener->MayAdd());
    if (request.add_at != 0) trip.Add(ForMaintenance(Faa(node.membership.At(request.add_at), request.delta)));
  }
}

// INVARIANT off/2: kept by the order of the verbs, by one trip for each node: a trip in order goes to one
// node. Lines of listeners that do not fit into it are READ by further trips, which is as good (pool/4):
// nothing is known before they have ended.
Task<Done> PoolClient::PublishOnline(Op& op) {
  const std::vector<Node*> nodes = NodesTakingPart();
  std::vector<Return> returns = Returns();
  std::vector<Pulse> pulses;
  std::vector<Control> controls(nodes.size());
  std::vector<uint64_t> listeners_added;
  for (Node* node : nodes) {
    const uint64_t known = node->membership.known_epoch();
    pulses.push_back(node->membership.NextPulse(known, std::min(known, node->allocator.OldestUnsettled())));
    node->published = std::max(node->published, known);
    listeners_added.push_back(node->listeners_added);
  }
  std::span<Return> left = returns;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto others =
        std::find_if(left.begin(), left.end(), [&](const Return& one) { return one.node != nodes[i]; });
    const std::span<Return> lines = left.first(static_cast<size_t>(others - left.begin()));
    left = left.subspan(lines.size());
    Batch trip(op, Order::kInOrder);
    AddReturn(op, trip, *nodes[i], pulses[i]);
    if (i > 0 && Mutant(kOnlineBeginsEarly)) continue;
    trip.Add(ForMaintenance(Read(nodes[i]->membership.At(kControlOffset),
                                 std::as_writable_bytes(std::span<Control, 1>(&controls[i], 1)))));
    const std::span<Return> in_trip = lines.first(std::min(lines.size(), kReadsPerTrip - 1));
    for (Return& one : in_trip) trip.Add(ForMaintenance(Read(one.line_at, one.line)));
    co_await trip;
    co_await ReadLines(op, lines, in_trip.size());
  }
  for (size_t i = 0; i < nodes.size() && Mutant(kOnlineReadsFirst); ++i)
    co_await op.InOrder(ForMaintenance(WriteObject(nodes[i]->membership.pulse_at(), pulses[i])));
  for (const Return& one : returns) one.listener->AfterSync(one.line);
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i]->membership.Learn(controls[i]);
    if (nodes[i]->listeners_added == listeners_added[i]) continue;
    for (const auto& listener : nodes[i]->listeners) listener->MissedSync();
  }
  co_return Done{};
}

Task<Done> PoolClient::ReadLines(Op& op, std::span<Return> returns, size_t first) {
  for (; first < returns.size(); first += kReadsPerTrip) {
    Batch trip(op, Order::kTogether);
    for (Return& one : returns.subspan(first, std::min(kReadsPerTrip, returns.size() - first)))
      trip.Add(ForMaintenance(Read(one.line_at, one.line)));
    co_await trip;
  }
  co_return Done{};
}

// ---- giving up chunks --------------------------------------------------------------------------------

// INVARIANT off/5, alloc/7: the epoch is held, by a pin, until all chunks have lost their owner. A client
// that sweeps after a death of which this one has not heard waits for it, and finds the chunks then.
Task<Done> PoolClient::Disown(Op& op) {
  if (read_only() || maintaining_ || !idle() || NeedsGrace()) co_return Done{};
  const ScopedFlag busy(maintaining_);
  std::optional<Pin> pin;
  if (!Mutant(kDisownOffline)) {
    co_await ComeOnline(op);
    pin.emplace(Begin(/*operations=*/0));
  }
  const Result<Done> given_up = co_await GiveUpMemory(op).Outcome();
  // A sweep is due; the chunks stay until then.
  if (!given_up.ok() && given_up.error().code() != ErrorCode::kContended) co_return given_up.error();
  co_return Done{};
}

}  // namespace farside::pool
