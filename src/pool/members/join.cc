// How a client registers, and how it gets a slot when all are taken.
//
// Dead clients keep their slot until a client that can walk the tables has adopted and swept what they left
// (adopt.cc). A newcomer to a full registry is no member, owns nothing, and cannot do that. But the adopter
// needs the slot of a dead client for one thing only: to know that chunks without owner may hold leaks. One
// slot says so as well as ten. So a newcomer releases the slot of a dead client D if that of another one
// stays:
//   1. It fences clients that are silent for a lease, as every client does (pool/2).
//   2. It raises the counter of deaths, reads an epoch, and waits until every live client has published a
//      larger one. From then on all of them know of D: a leaving client has swept for it, and a repairing
//      client looks at its chunks.
//   3. It takes the owner out of D's chunks and extents, one CAS each.
//   4. If another client is still fenced, it releases the slot of D. The client that releases that other slot
//      takes the chunks without owner and sweeps them first. A client that takes such a chunk in order to
//      allocate sees a fenced client and sweeps, too (alloc/7).
// If no other client is fenced, the slot of D can be released if D owned nothing and all chunks have an
// owner, so that there is nothing to find. Otherwise one of the live members, which have all other slots, has
// to do it. Where D has the only slot there can be none, so its slot is released all the same: fsck tells
// what has leaked, and that is better than a pool that no client can use.
//
// If the newcomer dies on the way, it leaves chunks without owner and D in its slot, which is what adopters
// expect.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pool/members/membership.h"
#include "pool/mutants.h"
#include "pool/region/epoch.h"

namespace farside::pool {

using fabric::Cas;
using fabric::Faa;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::Read;
using fabric::WriteObject;

namespace {

// A dead client is silent for a lease, and a live client moves past an epoch in less than another.
constexpr int kLooksPerLease = 8;
constexpr int kMostLooks = 4 * kLooksPerLease;
constexpr uint64_t kWordsAtOnce = 8192;

// The node lets readers take slots up to a bound that they share (reader/4 in reader_guard.h).
Error NoReaderSlot(const Error& refusal, uint32_t slots, fabric::NodeId node) {
  if (refusal.code() != ErrorCode::kPermissionDenied) return refusal;
  return Error(
      ErrorCode::kOutOfMemory,
      fmt::format("clients that may only read have half of the {} client slots of node {}, and get no "
                  "more; close one, or make the pool with more slots",
                  slots, Index(node)));
}

}  // namespace

Task<Done> Membership::Join(Op& op, WhileWaiting while_waiting) {
  std::vector<DeadClient> dead_clients;
  std::optional<Nanos> first_look;
  RegistryView view;
  for (int look = 0; look < kMostLooks; ++look) {
    const bool joined = co_await TakeFreeSlot(op);
    if (joined) co_return Done{};
    op.CountRetry();
    view = co_await LookAround(op);
    if (view.others < geometry_.client_slots) continue;  // a client has just left
    if (!first_look.has_value()) first_look = client_.Now();
    if (view.fenced.empty() && AllHaveBeatenSince(*first_look)) break;
    const bool at_once = co_await ReleaseDeadSlot(op, view, dead_clients);
    if (at_once) continue;
    if (while_waiting) co_await while_waiting(op);
    co_await op.Pause(std::max(options_.lease / kLooksPerLease, Nanos(1)));
  }
  co_return NoSlot(view);
}

Task<bool> Membership::TakeFreeSlot(Op& op) {
  std::vector<ClientSlot> slots(geometry_.client_slots);
  co_await op.InOrder(
      ForMaintenance(Read(At(geometry_.registry()), std::as_writable_bytes(std::span(slots)))));
  for (uint32_t slot = 0; slot < geometry_.client_slots; ++slot) {
    if (slots[slot].state.state() != ClientState::kFree) continue;
    const bool mine = co_await TakeSlot(op, slot, slots[slot].state);
    if (mine) co_return true;
  }
  co_return false;
}

// A client that dies here leaves a slot that is joining; it is fenced, and its slot released, like any other.
Task<bool> Membership::TakeSlot(Op& op, uint32_t slot, ClientWord found) {
  const auto at = At(geometry_.client_slot(slot));
  const ClientWord joining = found.JoinedBy(client_.id());
  auto trip = op.InOrder(ForMaintenance(Cas(at, found.word(), joining.word())),
                         ForMaintenance(Read<Control>(At(kControlOffset))));
  const auto taken = co_await trip.Outcome();
  if (!taken.ok() && client_.read_only())
    co_return NoReaderSlot(taken.error(), geometry_.client_slots, node_);
  if (!taken.ok()) co_return taken.error();
  const auto [word, control] = *taken;
  if (word != found.word()) co_return false;
  if (control.epoch > kMostEpoch) {
    co_await op.InOrder(ForMaintenance(Cas(at, joining.word(), joining.Freed().word())));
    co_return Error(ErrorCode::kCorrupt,
                    fmt::format("the epoch of node {} is {:#x}, which cannot be; run farside fsck",
                                Index(node_), control.epoch));
  }
  control_ = control;
  AnswerRoomWanted(control.room_wanted);  // it has nothing to give back
  // INVARIANT pool/1: the first pulse is that of a client with nothing in flight.
  const Pulse pulse = NextPulse(control.epoch, /*settled=*/control.epoch);
  const ClientWord live = joining.With(ClientState::kLive);
  auto [written, old] = co_await op.InOrder(ForMaintenance(WriteObject(at + kPulseOffset, pulse)),
                                            ForMaintenance(Cas(at, joining.word(), live.word())));
  if (old != joining.word()) {
    co_return Error(ErrorCode::kFenced,
                    "this client was taken for dead while it joined; reconnect as a new client");
  }
  self_ = Owner(slot, joining.generation());
  word_ = live;
  co_return true;
}

// ---- a registry that is full -------------------------------------------------------------------------

Task<bool> Membership::ReleaseDeadSlot(Op& op, RegistryView view, std::vector<DeadClient>& dead_clients) {
  if (client_.read_only()) co_return false;  // a member has to
  const bool announced = co_await Announce(op, view, dead_clients);
  const bool only_slot = geometry_.client_slots == 1 || Mutant(kReleaseLastDeadSlot);
  const bool another_stays = view.fenced.size() > 1;
  for (const DeadClient& dead_client : dead_clients) {
    if (dead_client.stamp >= view.safe_epoch && !Mutant(kReleaseSlotUnannounced)) continue;
    const Holdings holdings =
        co_await ReadHoldings(op, dead_client.dead, /*disown=*/another_stays || only_slot);
    bool may_release = only_slot || (!holdings.owns && !holdings.ownerless);
    if (!may_release && another_stays) may_release = co_await IsAnotherFenced(op, dead_client.dead);
    if (!may_release) continue;
    co_await ReleaseSlot(op, dead_client.dead);
    co_return true;
  }
  co_return announced;
}

// The client that fenced them may not have raised the counter yet.
Task<bool> Membership::Announce(Op& op, const RegistryView& view, std::vector<DeadClient>& dead_clients) {
  const auto is_fenced = [&](Owner owner) {
    return std::find(view.fenced.begin(), view.fenced.end(), owner) != view.fenced.end();
  };
  std::erase_if(dead_clients, [&](const DeadClient& dead_client) { return !is_fenced(dead_client.dead); });
  const auto is_known = [&](Owner owner) {
    return std::any_of(dead_clients.begin(), dead_clients.end(),
                       [&](const DeadClient& dead_client) { return dead_client.dead == owner; });
  };
  std::vector<Owner> fresh;
  std::copy_if(view.fenced.begin(), view.fenced.end(), std::back_inserter(fresh),
               [&](Owner owner) { return !is_known(owner); });
  if (fresh.empty()) co_return false;
  auto [deaths, control] =
      co_await op.InOrder(ForMaintenance(Faa(At(kDeathsOffset), 1)),
                          ForMaintenance(fabric::Fenced(Read<Control>(At(kControlOffset)))));
  // Others can publish more than this only when there is more.
  co_await op.InOrder(ForMaintenance(Cas(At(kEpochOffset), control.epoch, control.epoch + 1)));
  // INVARIANT off/4: its looks conclude no more than what it knows; the epoch is larger than `control.epoch`
  // now, by its own CAS or that of another client.
  control_.epoch = std::max(control_.epoch, control.epoch + 1);
  for (const Owner owner : fresh) dead_clients.push_back({.dead = owner, .stamp = control.epoch});
  co_return true;
}

// A chunk that another client adopts meanwhile is not touched: the CAS fails.
Task<Membership::Holdings> Membership::ReadHoldings(Op& op, Owner dead, bool disown) {
  Holdings holdings;
  for (uint64_t first = 0; first < geometry_.chunks(); first += kWordsAtOnce) {
    std::vector<ChunkWord> words(std::min(kWordsAtOnce, geometry_.chunks() - first));
    co_await op.InOrder(
        ForMaintenance(Read(At(geometry_.chunk_word(first)), std::as_writable_bytes(std::span(words)))));
    for (size_t i = 0; i < words.size(); ++i) {
      if (!words[i].CanBeOwned()) continue;
      holdings.ownerless |= words[i].owner().is_none();
      if (words[i].owner() != dead) continue;
      holdings.owns = true;
      if (!disown) continue;
      const fabric::FarAddr at = At(geometry_.chunk_word(first + i));
      co_await op.InOrder(ForMaintenance(Cas(at, words[i].word(), words[i].WithOwner(Owner()).word())));
    }
  }
  co_return holdings;
}

Task<bool> Membership::IsAnotherFenced(Op& op, Owner than) {
  std::vector<ClientSlot> slots(geometry_.client_slots);
  co_await op.InOrder(
      ForMaintenance(Read(At(geometry_.registry()), std::as_writable_bytes(std::span(slots)))));
  for (uint32_t slot = 0; slot < geometry_.client_slots; ++slot) {
    if (slot != than.slot() && slots[slot].state.state() == ClientState::kFenced) co_return true;
  }
  co_return false;
}

bool Membership::AllHaveBeatenSince(Nanos since) const {
  return std::all_of(watches_.begin(), watches_.end(),
                     [&](const auto& watch) { return watch.second.since > since; });
}

bool Membership::AllHaveAnswered(uint64_t room_wanted) const {
  return std::all_of(watches_.begin(), watches_.end(), [&](const auto& watch) {
    const bool joining = watch.second.word.state() == ClientState::kJoining;
    return joining || Heartbeat::HasAnswered(watch.second.heartbeat, room_wanted);
  });
}

Error Membership::NoSlot(const RegistryView& view) const {
  std::string message =
      fmt::format("all {} client slots of node {} are taken", geometry_.client_slots, Index(node_));
  if (view.fenced.empty()) {
    message += "; close a client, or make the pool with more slots";
  } else {
    message += fmt::format(
        ", {} of them by clients that died, whose memory only a client in the pool can adopt; let one that "
        "has its "
        "tables open run for a few leases and try again, or make the pool with more slots",
        view.fenced.size());
  }
  return Error(ErrorCode::kOutOfMemory, std::move(message));
}

}  // namespace farside::pool
