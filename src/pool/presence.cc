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
#include "pool/growing_pause.h"
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

// Pulses that no coroutine awaits land within this time, or the client is as good as cut off.
constexpr Nanos kLongestWait = std::chrono::seconds(1);
// How long a client gives up chunks in a row, and how many of them between two looks at the time.
constexpr int kDisownVisitsPerLease = 64;
constexpr size_t kChunksAtOnce = 64;
// As many as one round trip answers, the control lines included.
constexpr size_t kReadsPerTrip = fabric::kAnsweredVerbsPerRoundTrip;
constexpr size_t kMostVerbs = fabric::kMaxVerbsPerTrip;

}  // namespace

// What coming back takes at one node.
struct PoolClient::Return {
  struct Line {
    std::shared_ptr<SyncListener> listener;
    FarAddr at;
    std::array<std::byte, kLine> bytes{};
  };

  Node* node = nullptr;
  Pulse pulse;
  uint64_t listeners_added = 0;  // when the trip is posted
  std::vector<Line> lines;
  Control control{};
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
  GrowingPause pause;
  while (switching_) co_await op.Pause(pause.Next());
  co_return Done{};
}

// INVARIANT off/1: a coroutine that went offline, or beat, may have been destroyed with its pulse on the way.
Task<Done> PoolClient::AwaitOwnPulses(Op& op) {
  if (Mutant(kOfflineNotAwaited)) co_return Done{};
  co_await AwaitUnawaited(op);
  co_return Done{};
}

Task<Done> PoolClient::AwaitUnawaited(Op& op) {
  GrowingPause pause;
  while (client_.HasUnawaited()) {
    if (pause.waited() >= kLongestWait)
      co_return Error(ErrorCode::kUnavailable, "what this client has sent does not arrive; reconnect");
    co_await op.Pause(pause.Next());
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

std::vector<PoolClient::Return> PoolClient::Returns() {
  std::vector<Return> returns;
  for (Node* node : NodesTakingPart()) {
    const uint64_t known = node->membership.known_epoch();
    node->published = std::max(node->published, known);
    Return& one = returns.emplace_back();
    one.node = node;
    one.pulse = node->membership.NextPulse(known, std::min(known, node->allocator.OldestUnsettled()));
    one.listeners_added = node->listeners_added;
    for (const auto& listener : node->listeners) {
      if (Mutant(kOnlineNoRider)) break;
      const SyncRequest request = listener->BeforeSync(/*may_add=*/false);
      one.lines.push_back({.listener = listener, .at = node->membership.At(request.read_at)});
    }
  }
  return returns;
}

// INVARIANT off/2: the trips to all nodes are under way together, and all have ended before the client is
// online, also if one has failed: no pulse is left on its way (off/1).
Task<Done> PoolClient::PublishOnline(Op& op) {
  std::vector<Return> returns = Returns();
  if (returns.empty()) co_return Done{};
  std::vector<Task<Done>> trips;
  for (Return& one : returns) trips.push_back(ReturnTo(op, one));
  for (Task<Done>& trip : std::span(trips).subspan(1)) trip.Start();
  Result<Done> outcome = co_await trips.front().Outcome();
  GrowingPause pause;
  for (Task<Done>& trip : std::span(trips).subspan(1)) {
    while (!trip.done()) co_await op.Pause(pause.Next());
    const Result<Done> ended = trip.TakeResult();
    if (outcome.ok() && !ended.ok()) outcome = ended.error();
  }
  if (!outcome.ok()) co_return outcome.error();

  for (const Return& one : returns) {
    for (const Return::Line& line : one.lines) line.listener->AfterSync(line.bytes);
    one.node->membership.Learn(one.control);
    if (one.node->listeners_added == one.listeners_added) continue;
    for (const auto& listener : one.node->listeners) listener->MissedSync();
  }
  co_return Done{};
}

// INVARIANT off/2: kept by the order of the verbs. Lines of listeners that do not fit into the trip are READ
// by further ones, which is as good (pool/4): nothing is known before they have ended. Where READs of a trip
// have no order (freedom/5), all lines are.
Task<Done> PoolClient::ReturnTo(Op& op, Return& one) {
  const bool first_node = one.node == nodes_.front().get();
  const auto write = ForMaintenance(WriteObject(one.node->membership.pulse_at(), one.pulse));
  if (!first_node && Mutant(kOnlineBeginsEarly)) {
    op.Detach(Order::kInOrder, write);
    co_return Done{};
  }
  const bool reads_first = Mutant(kOnlineReadsFirst);
  Batch trip(op, Order::kInOrder);
  if (!reads_first && (first_node || !Mutant(kOnlineOneNode))) trip.Add(write);
  for (const Return::Line& line : one.lines) {
    if (!Mutant(kOnlineAdds)) break;
    const SyncRequest request = line.listener->BeforeSync(line.listener->MayAdd());
    if (request.add_at != 0)
      trip.Add(ForMaintenance(Faa(one.node->membership.At(request.add_at), request.delta)));
  }
  trip.Add(ForMaintenance(Read(one.node->membership.At(kControlOffset),
                               std::as_writable_bytes(std::span<Control, 1>(&one.control, 1)))));
  const std::span<Return::Line> lines = one.lines;
  const bool one_trip = op.client().orders_reads() || Mutant(kLinesInAnyOrder);
  const size_t along = one_trip ? std::min(lines.size(), kReadsPerTrip - 1) : 0;
  for (Return::Line& line : lines.first(along)) trip.Add(ForMaintenance(Read(line.at, line.bytes)));
  co_await trip;
  for (size_t first = along; first < lines.size(); first += kReadsPerTrip) {
    Batch more(op, Order::kTogether);
    for (Return::Line& line : lines.subspan(first, std::min(kReadsPerTrip, lines.size() - first)))
      more.Add(ForMaintenance(Read(line.at, line.bytes)));
    co_await more;
  }
  if (reads_first) co_await op.InOrder(write);
  co_return Done{};
}

// ---- giving up chunks --------------------------------------------------------------------------------

// INVARIANT off/5, alloc/7: the epoch is held, by a pin, until the chunks have lost their owner. A client
// that sweeps after a death of which this one has not heard waits for it, and finds the chunks then.
// The keeper, which beats for all sessions of a process, waits for this.
Task<bool> PoolClient::Disown(Op& op, const std::atomic<bool>* wanted) {
  if (read_only() || OwnsNothing()) co_return true;
  if (maintaining_ || !idle() || NeedsGrace()) co_return false;
  const ScopedFlag busy(maintaining_);
  std::optional<Pin> pin;
  if (!Mutant(kDisownOffline)) {
    co_await ComeOnline(op);
    pin.emplace(Begin(/*operations=*/0));
  }
  const Nanos end = client_.Now() + options_.lease.lease / kDisownVisitsPerLease;
  const auto stops = [&] {
    return client_.Now() >= end || (wanted != nullptr && wanted->load(std::memory_order_relaxed));
  };
  bool more = true;
  while (more) {
    more = false;
    for (auto& node : nodes_) {
      if (!TakesPart(*node) || node->allocator.OwnsNothing()) continue;
      const Result<Done> left = co_await node->allocator.LeaveSome(op, kChunksAtOnce).Outcome();
      // A sweep is due; the chunks stay until then.
      if (!left.ok() && left.error().code() != ErrorCode::kContended) co_return left.error();
      if (!left.ok()) co_return false;
      more |= !node->allocator.OwnsNothing();
    }
    if (more && stops()) co_return false;
  }
  co_return true;
}

}  // namespace farside::pool
