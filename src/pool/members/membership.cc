#include "pool/members/membership.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <span>

#include "pool/mutants.h"

namespace farside::pool {

namespace {

constexpr size_t kListenersPerTrip = 8;  // with control, no more answers than one round trip has room for
// Pulse, epoch and control; of each listener what it adds, and its line.
constexpr size_t kMostVerbsOfSync = 3 + 2 * kListenersPerTrip;
// A client that is silent for this part of a lease may be dead, and the node may know.
constexpr int kAsksPerLease = 8;

}  // namespace

using fabric::Cas;
using fabric::Faa;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::Read;
using fabric::SmallBatch;
using fabric::WriteObject;

Task<Done> Membership::Leave(Op& op) {
  const auto at = At(geometry_.client_slot(self_.slot()));
  const uint64_t old = co_await op.InOrder(ForMaintenance(Cas(at, word_.word(), word_.Freed().word())));
  if (old != word_.word()) {
    co_return Error(ErrorCode::kFenced,
                    "this client was taken for dead before it left; others have its memory now");
  }
  self_ = Owner();
  co_return Done{};
}

Task<Done> Membership::Sync(Op& op, uint64_t epoch, uint64_t settled, bool raise,
                            std::span<const std::shared_ptr<SyncListener>> listeners) {
  assert(!self_.is_none() && "a client that is not registered has no pulse to write");
  const Pulse pulse = NextPulse(epoch, settled);
  if (!listeners.empty()) {
    co_await SyncWithListeners(op, pulse, raise, listeners);
    co_return Done{};
  }
  if (raise) {
    const uint64_t known = control_.epoch;
    auto [written, old, control] =
        co_await op.InOrder(ForMaintenance(WriteObject(pulse_at(), pulse)),
                            ForMaintenance(Cas(At(kEpochOffset), known, known + 1)),
                            ForMaintenance(Read<Control>(At(kControlOffset))));
    Learn(control);
  } else {
    auto [written, control] = co_await op.InOrder(ForMaintenance(WriteObject(pulse_at(), pulse)),
                                                  ForMaintenance(Read<Control>(At(kControlOffset))));
    Learn(control);
  }
  co_return Done{};
}

// Only the first few go in the trip that publishes; those of a client with many tables READ a little later,
// which is as good (pool/4). Where READs of a trip have no order (freedom/5), all of them do.
Task<Done> Membership::SyncWithListeners(Op& op, Pulse pulse, bool raise,
                                         std::span<const std::shared_ptr<SyncListener>> waiting) {
  // A copy, because tables may be opened and closed meanwhile, and none may be passed over. It has the memory
  // of the last sync; a second one at the same time gets its own.
  SyncListeners listeners = std::move(last_listeners_);
  listeners.assign(waiting.begin(), waiting.end());
  Control control{};
  for (size_t first = 0; first < listeners.size(); first += kListenersPerTrip) {
    const std::span some =
        std::span(listeners).subspan(first, std::min(kListenersPerTrip, listeners.size() - first));
    std::array<SyncRequest, kListenersPerTrip> requests;
    std::array<std::array<std::byte, kLine>, kListenersPerTrip> lines;
    fabric::SmallBatch<kMostVerbsOfSync> trip(op, fabric::Order::kInOrder);
    if (first == 0) {
      trip.Add(ForMaintenance(WriteObject(pulse_at(), pulse)));
      if (raise) trip.Add(ForMaintenance(Cas(At(kEpochOffset), control_.epoch, control_.epoch + 1)));
    }
    for (size_t i = 0; i < some.size(); ++i) {
      requests[i] = some[i]->BeforeSync(some[i]->MayAdd());
      if (requests[i].add_at != 0) trip.Add(ForMaintenance(Faa(At(requests[i].add_at), requests[i].delta)));
    }
    const auto read_control = [&] {
      if (first == 0)
        trip.Add(ForMaintenance(
            Read(At(kControlOffset), std::as_writable_bytes(std::span<Control, 1>(&control, 1)))));
    };
    const auto read_lines = [&](auto& into) {
      for (size_t i = 0; i < some.size(); ++i)
        into.Add(ForMaintenance(Read(At(requests[i].read_at), lines[i])));
    };
    const bool one_trip = op.client().orders_reads() || Mutant(kLinesInAnyOrder);
    if (!Mutant(kRootBeforeEpoch)) read_control();
    if (one_trip) read_lines(trip);
    if (Mutant(kRootBeforeEpoch)) read_control();
    co_await trip;
    if (!one_trip) {
      fabric::SmallBatch<kListenersPerTrip> behind(op, fabric::Order::kTogether);
      read_lines(behind);
      co_await behind;
    }
    for (size_t i = 0; i < some.size(); ++i) some[i]->AfterSync(lines[i]);
  }
  // INVARIANT pool/4: no operation knows the epoch before all listeners know what was true at it.
  Learn(control);
  listeners.clear();
  last_listeners_ = std::move(listeners);
  co_return Done{};
}

// Syncs of several operations may be answered in any order, and what was known is not forgotten: an operation
// that begins later must not know less, because the older one may be all that decides what is published
// (pool/1).
void Membership::Learn(const Control& read) {
  control_.epoch = std::max(control_.epoch, read.epoch);
  control_.catalog_changes = std::max(control_.catalog_changes, read.catalog_changes);
  control_.deaths = std::max(control_.deaths, read.deaths);
  control_.room_wanted = std::max(control_.room_wanted, read.room_wanted);
}

bool SyncListener::MayAdd() const {
  return home_ == nullptr || home_->control().catalog_changes == confirmed_at_ || Mutant(kAddUnvalidated);
}

// INVARIANT off/4: a look concludes no more than the epoch that was known when it was posted, or that its own
// CAS has found or made in front of its READ. A slot that is offline says nothing of later times: its client
// may have come back since, and what was unlinked and stamped since is not covered by the look.
Task<uint64_t> Membership::ReadRegistry(Op& op, std::span<ClientSlot> slots, bool raise) {
  const uint64_t known = control_.epoch;
  SmallBatch<2> trip(op, fabric::Order::kInOrder);
  if (raise) trip.Add(ForMaintenance(Cas(At(kEpochOffset), known, known + 1)));
  trip.Add(ForMaintenance(Read(At(geometry_.registry()), std::as_writable_bytes(slots))));
  co_await trip;
  if (Mutant(kLookUncapped)) co_return kOfflineEpoch;
  if (Mutant(kCapWhenAnswered)) co_return control_.epoch;
  if (!raise) co_return known;
  const uint64_t old = trip.Old(0);
  co_return old == known ? known + 1 : old;
}

Task<RegistryView> Membership::LookAround(Op& op, bool raise) {
  // The memory of the last look; a second one at the same time gets its own.
  std::vector<ClientSlot> slots = std::move(looked_at_);
  slots.resize(geometry_.client_slots);
  const Nanos asked = client_.Now();
  const uint64_t most = co_await ReadRegistry(op, slots, raise && !client_.read_only());
  const std::vector<bool> gone = co_await GoneClients(op, 0, slots);
  RegistryView view;
  view.safe_epoch = view.settled_epoch = most;
  for (uint32_t slot = 0; slot < geometry_.client_slots; ++slot) {
    const ClientSlot& seen = slots[slot];
    if (seen.state.state() == ClientState::kFree) watches_.erase(slot);
    if (seen.state.state() == ClientState::kFree) continue;
    if (!IsSelf(slot)) ++view.others;
    bool fenced = seen.state.state() == ClientState::kFenced;
    if (!fenced && (IsSilent(slot, seen, asked) || (!gone.empty() && gone[slot])))
      fenced = co_await TryFence(op, slot, seen.state);
    if (fenced) {
      watches_.erase(slot);
      view.fenced.push_back(Owner(slot, seen.state.generation()));
      continue;
    }
    // A client that is joining holds nothing, and what it finds later was not unlinked before.
    if (seen.state.state() == ClientState::kJoining) continue;
    view.safe_epoch = std::min(view.safe_epoch, seen.pulse.epoch);
    if (!IsSelf(slot)) view.settled_epoch = std::min(view.settled_epoch, seen.pulse.settled);
  }
  looked_at_ = std::move(slots);
  co_return view;
}

// A node that knows its clients by their connections knows at once, and for good, that a client is gone. So
// other clients wait only for clients that stop and stay connected.
bool Membership::IsWorthAsking(uint32_t slot, const ClientSlot& seen) {
  const bool there = seen.state.state() == ClientState::kLive || seen.state.state() == ClientState::kJoining;
  if (!there || IsSelf(slot)) return false;
  const Nanos now = client_.Now();
  const auto known = watches_.find(slot);
  if (known == watches_.end() || known->second.word != seen.state) return true;
  Watch& watch = known->second;
  const Nanos patience = options_.lease / kAsksPerLease;
  if (watch.heartbeat != seen.pulse.heartbeat || now - watch.since < patience) return false;
  if (now - watch.asked < patience) return false;
  watch.asked = now;
  return true;
}

Task<std::vector<bool>> Membership::GoneClients(Op& op, uint32_t first, std::span<const ClientSlot> slots) {
  std::vector<bool> gone;
  if (!client_.CanTellGoneClients() || client_.read_only()) co_return std::move(gone);
  std::vector<size_t> asked;
  std::string request;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!IsWorthAsking(first + static_cast<uint32_t>(i), slots[i])) continue;
    const uint32_t id = Number(slots[i].state.fabric_client());
    asked.push_back(i);
    request.append(reinterpret_cast<const char*>(&id), sizeof id);
  }
  if (asked.empty()) co_return std::move(gone);
  auto call = op.InOrder(ForMaintenance(fabric::CallVerb(node_, fabric::kGoneClients, request)));
  const Result<std::string> reply = co_await call.Outcome();
  if (!reply.ok() && reply.error().code() != ErrorCode::kPermissionDenied) co_return reply.error();
  if (!reply.ok() || reply->size() != asked.size()) co_return std::move(gone);
  gone.resize(slots.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    if ((*reply)[i] == 0) continue;
    // A client that leaves in good order gives its slot back before it disconnects. So if it is gone and the
    // slot still names it, it has died; what was read before the node was asked may be from a time when it
    // was about to leave.
    const ClientSlot& seen = slots[asked[i]];
    const uint64_t now = co_await op.InOrder(
        ForMaintenance(Read<uint64_t>(At(geometry_.client_slot(first + static_cast<uint32_t>(asked[i]))))));
    gone[asked[i]] = now == seen.state.word();
  }
  co_return std::move(gone);
}

// What was seen is as old as the READ, which may have been answered long ago: this client may have slept
// since.
//
// In a slot whose state no client writes, nothing beats; there is nothing to wait for.
bool Membership::IsSilent(uint32_t slot, const ClientSlot& seen, Nanos asked) {
  if (IsSelf(slot)) return false;
  if (seen.state.undefined()) return true;
  Watch& watch = watches_[slot];
  // To become live is a sign of life, too: the first beat may look like the last one of the slot's previous
  // client.
  if (watch.word != seen.state || watch.heartbeat != seen.pulse.heartbeat) {
    watch = Watch{seen.state, seen.pulse.heartbeat, client_.Now()};
    return false;
  }
  return asked - watch.since >= options_.lease;
}

Task<Standing> Membership::StandingOf(Op& op, Owner owner) {
  assert((!self_.is_none() || node_ == fabric::kNowhere) &&
         "asking is a sign of life, so the client must be registered");
  if (owner.slot() >= geometry_.client_slots) {
    co_return Error(ErrorCode::kCorrupt, fmt::format("an owner names client slot {} of node {}, which has {}",
                                                     owner.slot(), Index(node_), geometry_.client_slots));
  }
  // A client that waits for another one beats, or it would be taken for dead itself.
  const uint64_t beat = NextHeartbeat();
  const Nanos asked = client_.Now();
  auto [beaten, seen] = co_await op.InOrder(
      ForMaintenance(WriteObject(At(geometry_.client_slot(self_.slot()) + kHeartbeatOffset), beat)),
      ForMaintenance(Read<ClientSlot>(At(geometry_.client_slot(owner.slot())))));
  // INVARIANT pool/3: the client that used the slot before has left or was fenced.
  if (seen.state.generation() != owner.generation()) co_return Standing::kGone;
  if (seen.state.state() == ClientState::kFree || seen.state.state() == ClientState::kFenced)
    co_return Standing::kGone;
  const std::vector<bool> gone = co_await GoneClients(op, owner.slot(), std::span(&seen, 1));
  const bool silent = IsSilent(owner.slot(), seen, asked);
  if (!silent && (gone.empty() || !gone[0])) co_return Standing::kAlive;
  const bool fenced = co_await TryFence(op, owner.slot(), seen.state);
  co_return fenced ? Standing::kGone : Standing::kAlive;
}

// A silent client counts as alive as long as some node cannot be told to cut it off.
Task<bool> Membership::TryFence(Op& op, uint32_t slot, ClientWord word) {
  if (client_.read_only()) co_return false;  // another client has to
  const Result<Done> fenced = co_await Fence(op, slot, word).Outcome();
  if (fenced.ok()) co_return true;
  // A node that is lost on the way may have heard of it, or not; the next client that fences makes sure.
  const ErrorCode why = fenced.error().code();
  const bool lost = why == ErrorCode::kUnavailable || why == ErrorCode::kOutcomeUnknown;
  if (lost && client_.Reaches(node_) && !ReachesAll()) co_return false;
  co_return fenced.error();
}

bool Membership::ReachesAll() const {
  for (size_t node = 0; node < client_.region_bytes().size(); ++node) {
    if (!client_.Reaches(static_cast<fabric::NodeId>(node))) return false;
  }
  return true;
}

// INVARIANT pool/2: first the fabric, then the slot. A client that reads kFenced there knows that no verb of
// the fenced client can take effect any more. If the fencing client dies in between, the next one fences
// again.
//
// An undefined word may name any client, also this one, which is in another slot.
Task<Done> Membership::Fence(Op& op, uint32_t slot, ClientWord word) {
  const fabric::ClientId victim = word.fabric_client();
  const bool no_victim = word.undefined() && (victim == fabric::ClientId::kNone || victim == client_.id());
  if (!no_victim && !Mutant(kSlotBeforeFence)) co_await FenceEverywhere(op, victim);
  co_await op.InOrder(ForMaintenance(Cas(At(geometry_.client_slot(slot)), word.word(),
                                         word.With(ClientState::kFenced).word())),
                      ForMaintenance(fabric::Fenced(Faa(At(kDeathsOffset), 1))));
  co_return Done{};
}

Task<Done> Membership::ReleaseSlot(Op& op, Owner dead) {
  const auto at = At(geometry_.client_slot(dead.slot()));
  const ClientSlot seen = co_await op.InOrder(ForMaintenance(Read<ClientSlot>(at)));
  if (seen.state.generation() != dead.generation() || seen.state.state() != ClientState::kFenced)
    co_return Done{};
  co_await op.InOrder(ForMaintenance(Cas(at, seen.state.word(), seen.state.Freed().word())));
  co_return Done{};
}

}  // namespace farside::pool
