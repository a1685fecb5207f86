#include "pool/room.h"

#include <algorithm>
#include <chrono>

#include "pool/mutants.h"

namespace farside::pool {

using fabric::NodeId;
using fabric::Op;

namespace {

// What another client has retired comes back when that client has synced, has looked when all others have
// moved on, and this one has looked. Nudges make idle clients of this process do so in every round.
constexpr int kFewestRounds = 6;
// Of a lease.
constexpr int kLongestPausesPerLease = 64;
constexpr Nanos kShortestPause = std::chrono::microseconds(100);

}  // namespace

RoomSearch::RoomSearch(PoolClient& pool, Patience patience)
    : pool_(&pool), patience_(patience), began_(pool.client().Now()) {}

Task<Done> RoomSearch::Round(Op& op) {
  if (!begun_) co_await Begin(op);
  co_await pool_->GoOffline(op);  // if it can
  co_await pool_->LookForRoom(op);
  ++rounds_;
  pool_->ExpectRoom();
  concluded_ = IsConclusive();
  co_return Done{};
}

Task<Done> RoomSearch::Begin(Op& op) {
  co_await pool_->WantRoom(op);
  // A sync after that, and the first look at all pulses.
  co_await pool_->LookForRoom(op);
  for (size_t node = 0; node < pool_->nodes(); ++node) {
    const Membership& member = pool_->member(static_cast<NodeId>(node));
    epochs_.push_back(member.known_epoch());
    wanted_.push_back(member.control().room_wanted);
  }
  begun_ = true;
  co_return Done{};
}

// A part of the time that it has searched so far.
Nanos RoomSearch::PauseBetweenRounds() const {
  const Nanos lease = pool_->member(NodeId{0}).options().lease;
  const Nanos longest = std::max(lease / kLongestPausesPerLease, kShortestPause);
  return std::clamp((pool_->client().Now() - began_) / 4, kShortestPause, longest);
}

bool RoomSearch::IsConclusive() const {
  if (Mutant(kFullBeforeConclusive)) return true;
  if (pool_->client().Now() - began_ >= pool_->LongestSearch()) return true;
  if (rounds_ < kFewestRounds) return false;
  for (size_t i = 0; i < epochs_.size(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!pool_->IsMember(node)) continue;
    if (pool_->safe_epoch(node) <= epochs_[i]) return false;
    if (patience_ == Patience::kPatient && !pool_->member(node).AllHaveAnswered(wanted_[i])) return false;
  }
  return true;
}

}  // namespace farside::pool
