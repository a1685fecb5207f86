#include "pool/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>

#include "pool/growing_pause.h"
#include "pool/mutants.h"
#include "pool/scoped_flag.h"

namespace farside::pool {

using fabric::NodeId;
using fabric::Op;

namespace {

// A client syncs this often within a lease, so that a few that are late do not make it suspect.
constexpr int kSyncsPerLease = 8;
// How long to wait for others to move on: some leases, looking a few times in each.
constexpr int kGracePausesPerLease = 16;
constexpr int kMostGraceRounds = 1000;
constexpr int kRoundsForBurials = 4;
constexpr int kSearchesPerLease = 4;
// Attempts to see all detached verbs completed; if it fails, the epoch waits for the next sync.
constexpr int kMostDrainPauses = 64;

}  // namespace

PoolClient::PoolClient(fabric::Client& client, const std::vector<Geometry>& geometries, ClientOptions options)
    : client_(client),
      options_(options),
      nowhere_(std::make_unique<Node>(client, fabric::kNowhere, geometries.front(), options.lease)) {
  for (size_t i = 0; i < geometries.size(); ++i) {
    nodes_.push_back(std::make_unique<Node>(client, static_cast<NodeId>(i), geometries[i], options.lease));
  }
}

Task<std::unique_ptr<PoolClient>> PoolClient::Join(Op& op, fabric::Client& client,
                                                   std::vector<Geometry> geometries, ClientOptions options) {
  std::unique_ptr<PoolClient> joined(new PoolClient(client, geometries, options));
  for (size_t i = 0; i < joined->nodes_.size(); ++i) {
    Node& node = *joined->nodes_[i];
    if (!client.Reaches(static_cast<NodeId>(i))) continue;
    // To wait for a slot takes leases.
    const Membership::WhileWaiting beat = [pool = joined.get(), i](Op& waiting) {
      return pool->Beat(waiting, i);
    };
    const Result<Done> outcome = co_await node.membership.Join(op, beat).Outcome();
    if (!outcome.ok()) {
      // Nothing is owned yet. What cannot be left is cut off, and others find out.
      for (size_t j = 0; j < i; ++j) {
        if (joined->nodes_[j]->joined) co_await joined->nodes_[j]->membership.Leave(op).Outcome();
      }
      co_return outcome.error();
    }
    node.joined = true;
    node.published = node.membership.known_epoch();
    node.spares_given = node.membership.control().room_wanted;
    node.allocator.set_ask_for_grace([pool = joined.get()](Op& asking) { return pool->KeepUp(asking); });
  }
  const auto is_member = [](const auto& node) { return node->joined; };
  if (std::none_of(joined->nodes_.begin(), joined->nodes_.end(), is_member))
    co_return Error(ErrorCode::kUnavailable, "no node of the pool can be reached; try again later");
  joined->NewGeneration();
  joined->last_round_ = client.Now();
  co_return std::move(joined);
}

// A sign of life on the first `nodes` nodes, while nothing is in flight and nothing owned.
Task<Done> PoolClient::Beat(Op& op, size_t nodes) {
  for (size_t i = 0; i < nodes; ++i) {
    if (!TakesPart(*nodes_[i])) continue;
    Membership& member = nodes_[i]->membership;
    const uint64_t known = member.known_epoch();
    co_await member.Sync(op, known, known, /*raise=*/false);
  }
  co_return Done{};
}

PoolClient::Pin PoolClient::Begin(uint64_t operations) {
  assert(online_ && "a client comes online before it begins an operation");
  Generation& current = generations_.back();
  ++current.in_flight;
  ++in_flight_;
  ++begun_;
  since_round_ += operations;
  return Pin(*this, current);
}

void PoolClient::End(Generation& generation) {
  assert(generation.in_flight > 0);
  --generation.in_flight;
  --in_flight_;
}

// Operations that begin from now on know the epochs of the last sync.
void PoolClient::NewGeneration() {
  Generation generation;
  if (!spare_.empty()) {
    generation.epochs = std::move(spare_.back());
    spare_.pop_back();
    generation.epochs.clear();
  }
  for (const auto& node : nodes_) generation.epochs.push_back(node->membership.known_epoch());
  generations_.push_back(std::move(generation));
  DropPassedGenerations();
}

// INVARIANT pool/1: verbs without a waiter belong to operations that have ended; they must have landed before
// the epoch of their generation is given up. Those that were posted later belong to later generations: a
// client with many operations in flight would never publish if it waited for all of them.
bool PoolClient::OldestHasPassed() {
  Generation& oldest = generations_.front();
  if (oldest.in_flight > 0) return false;
  if (Mutant(kForgetDetached)) return true;
  if (Mutant(kAwaitAllDetached)) return !client_.HasUnawaited();
  if (!oldest.trips_posted.has_value()) oldest.trips_posted = client_.trips_posted();
  return !client_.HasUnawaitedOfFirst(*oldest.trips_posted);
}

void PoolClient::DropPassedGenerations() {
  while (generations_.size() > 1 && OldestHasPassed()) {
    spare_.push_back(std::move(generations_.front().epochs));
    generations_.pop_front();
  }
}

Task<Done> PoolClient::AwaitDetached(Op& op) {
  for (int pause = 0; pause < kMostDrainPauses; ++pause) {
    DropPassedGenerations();
    if (generations_.size() == 1 || generations_.front().in_flight > 0) break;
    co_await op.Pause(Nanos(1000));
  }
  co_return Done{};
}

Task<Done> PoolClient::Sync(Op& op, bool raise) {
  if (switching_) co_await AwaitSwitch(op);
  if (!online_) {
    co_await SyncOffline(op, raise);
    co_return Done{};
  }
  const ScopedCount syncing(syncing_);
  co_await AwaitDetached(op);
  // A copy: another sync of this client may drop the generation while this one waits.
  std::vector<uint64_t> oldest;
  if (!spare_.empty()) {
    oldest = std::move(spare_.back());
    spare_.pop_back();
  }
  oldest = Mutant(kPublishTooEarly) ? generations_.back().epochs : generations_.front().epochs;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!TakesPart(*nodes_[i])) continue;
    const bool may_raise = raise && !client_.read_only();
    const Result<Done> synced = co_await SyncNode(op, *nodes_[i], oldest[i], may_raise).Outcome();
    if (!synced.ok() && TakesPart(*nodes_[i])) co_return synced.error();
  }
  spare_.push_back(std::move(oldest));
  NewGeneration();
  co_return Done{};
}

Task<Done> PoolClient::SyncNode(Op& op, Node& node, uint64_t epoch, bool raise) {
  // Operations in flight may have unlinked what they have not retired yet.
  const uint64_t settled = std::min(epoch, node.allocator.OldestUnsettled());
  // Only what was unlinked before the trip is posted was unlinked before the epoch is read.
  const uint64_t retired_before = node.allocator.retired_so_far();
  const uint64_t waiting_before = node.called + node.waiting.size();
  // INVARIANT off/6, off/3: a client that is offline has published no larger epoch, and adds nothing.
  const bool offline = epoch == kOfflineEpoch;
  if (!offline) node.published = std::max(node.published, epoch);
  const uint64_t listeners_added = node.listeners_added;
  const std::span listeners = offline ? std::span<const std::shared_ptr<SyncListener>>() : node.listeners;
  co_await node.membership.Sync(op, epoch, settled, raise, listeners);
  if (node.listeners_added != listeners_added) {
    for (const auto& listener : node.listeners) listener->MissedSync();
  }
  const uint64_t known = node.membership.known_epoch();
  node.allocator.Stamp(retired_before, known);
  for (size_t i = 0; node.called + i < waiting_before && i < node.waiting.size(); ++i) {
    Waiting& waiting = node.waiting[i];
    if (waiting.stamp == kUnstamped) waiting.stamp = known;
  }
  co_return Done{};
}

bool PoolClient::TakesPartEverywhere() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [this](const auto& node) { return TakesPart(*node); });
}

bool PoolClient::MaintenanceDue() const { return sync_requested_ || RoundDue(); }

bool PoolClient::RoundDue() const {
  return since_round_ >= options_.operations_per_sync ||
         client_.Now() - last_round_ >= options_.lease.lease / kSyncsPerLease;
}

bool PoolClient::RepairDue() const {
  // A walk through all tables needs all nodes.
  return walk_ && TakesPartEverywhere() && std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) {
           return node->allocator.SweepDue();
         });
}

bool PoolClient::NeedsGrace() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [this](const auto& node) {
    return TakesPart(*node) && (!node->waiting.empty() ||
                                node->allocator.OldestUnsettled() != std::numeric_limits<uint64_t>::max());
  });
}

Task<Done> PoolClient::MoveOn(Op& op, Look look) {
  since_round_ = 0;
  last_round_ = client_.Now();
  sync_requested_ = false;
  co_await Sync(op, /*raise=*/false);
  const bool looks = look != Look::kIfNeeded || online_ || NeedsGrace();
  for (auto& node : nodes_) {
    if (!looks || !TakesPart(*node)) continue;
    const bool raise = look == Look::kAndRaise || NeedsGrace();
    const Result<Done> moved = co_await MoveOnAt(op, *node, raise).Outcome();
    if (!moved.ok() && TakesPart(*node)) co_return moved.error();
  }
  co_await AnswerRoomWanted(op, /*searches=*/look == Look::kAndRaise);
  co_return Done{};
}

Task<Done> PoolClient::MoveOnAt(Op& op, Node& node, bool raise) {
  RegistryView view = co_await node.membership.LookAround(op, raise);
  node.safe_epoch = view.safe_epoch;
  node.live = view.others - static_cast<uint32_t>(view.fenced.size()) + 1;
  node.fenced = std::move(view.fenced);
  co_await node.allocator.Reclaim(op, view.safe_epoch);
  while (!node.waiting.empty() && node.waiting.front().stamp < view.safe_epoch) {
    const std::function<void()> callback = std::move(node.waiting.front().callback);
    node.waiting.pop_front();
    ++node.called;
    callback();
  }
  co_return Done{};
}

Task<Done> PoolClient::Maintain(Op& op) {
  if (maintaining_) co_return Done{};  // another operation of this client is at it
  const ScopedFlag busy(maintaining_);
  const bool only_sync = sync_requested_ && !WaitsForGrace() && !RoundDue();
  sync_requested_ = false;
  if (only_sync) {
    co_await Sync(op, /*raise=*/false);
    co_await AnswerRoomWanted(op, /*searches=*/false);
    co_return Done{};
  }
  co_await MoveOn(op, Look::kAlways);
  co_await RepairAfterDeaths(op);
  co_return Done{};
}

Task<Done> PoolClient::KeepUp(Op& op) {
  if (maintaining_) co_return Done{};
  const ScopedFlag busy(maintaining_);
  co_await MoveOn(op, Look::kIfNeeded);
  co_return Done{};
}

// ---- room ----------------------------------------------------------------------------------------------

Task<Done> PoolClient::WantRoom(Op& op) {
  if (read_only()) co_return Done{};
  for (const auto& node : nodes_) {
    if (!TakesPart(*node)) continue;
    const fabric::FarAddr wanted = node->membership.At(kRoomWantedOffset);
    auto raised = co_await op.InOrder(fabric::ForMaintenance(fabric::Faa(wanted, 1))).Outcome();
    if (!raised.ok() && TakesPart(*node)) co_return raised.error();
  }
  co_return Done{};
}

// A client that is offline is idle. It owes its sparse chunks, too, which only their owner can empty
// (evac/2), so it has answered when it owns nothing.
Task<Done> PoolClient::AnswerRoomWanted(Op& op, bool searches) {
  for (const auto& node : nodes_) {
    if (!TakesPart(*node) || node->membership.HasAnswered()) continue;
    const uint64_t wanted = node->membership.control().room_wanted;
    const bool has_spares = wanted != node->spares_given && !read_only();
    node->spares_given = wanted;
    if (has_spares && !Mutant(kRoomNotAnswered)) {
      const Result<Done> gave_up = co_await node->allocator.GiveUpSpares(op).Outcome();
      if (!gave_up.ok() && TakesPart(*node)) co_return gave_up.error();
    }
    if (online_ || searches || OwnsNothing() || Mutant(kRoomNotAnswered))
      node->membership.AnswerRoomWanted(wanted);
  }
  co_return Done{};
}

bool PoolClient::OwnsNothing() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto& node) { return node->allocator.OwnsNothing(); });
}

// Tasks of one client that search together share the looks: all that wait here when a look ends need one
// more, and one of them makes it.
Task<Done> PoolClient::LookForRoom(Op& op) {
  const uint64_t wanted = looks_begun_ + 1;
  GrowingPause pause;
  while (looks_ended_ < wanted) {
    if (maintaining_) {
      if (pause.waited() >= LongestSearch()) co_return Done{};
      co_await op.Pause(pause.Next());
      continue;
    }
    const ScopedFlag busy(maintaining_);
    const uint64_t look = ++looks_begun_;
    co_await MoveOn(op, Look::kAndRaise);
    looks_ended_ = look;
  }
  co_return Done{};
}

Task<Done> PoolClient::GiveBackUnused(Op& op) {
  for (const auto& node : nodes_) {
    if (!TakesPart(*node)) continue;
    // Nothing that waits for grace was stamped with less.
    const Result<Done> given_back = co_await node->allocator.Reclaim(op, /*safe_epoch=*/0).Outcome();
    if (!given_back.ok() && TakesPart(*node)) co_return given_back.error();
  }
  co_return Done{};
}

void PoolClient::AfterGrace(NodeId node, std::function<void()> callback) {
  NodeOf(node).waiting.push_back({.stamp = kUnstamped, .callback = std::move(callback)});
}

// A sweep must know what this client has handed out and published, so it begins only between operations.
// Until such a moment comes, the dead wait; others may be faster.
Task<Done> PoolClient::RepairAfterDeaths(Op& op) {
  if (!walk_ || in_flight_ > 0 || !TakesPartEverywhere()) co_return Done{};
  const auto has_dead = [](const auto& node) { return !node->fenced.empty() || node->allocator.SweepDue(); };
  if (std::none_of(nodes_.begin(), nodes_.end(), has_dead)) co_return Done{};
  co_await ComeOnline(op);  // INVARIANT off/5
  bool sweep = false;
  for (auto& node : nodes_) {
    for (const Owner dead : node->fenced) co_await node->allocator.Adopt(op, dead);
    sweep |= node->allocator.SweepDue();
  }
  if (sweep) {
    // INVARIANT alloc/7: no slot is released in a round that sweeps. The next round reads the registry and
    // the chunk table again, for clients that died and for chunks that lost their owner meanwhile.
    if (in_flight_ == 0) co_await SweepAll(op);
    co_return Done{};
  }
  for (auto& node : nodes_) {
    for (const Owner dead : node->fenced) {
      if (node->allocator.MayReleaseSlot(dead)) co_await node->membership.ReleaseSlot(op, dead);
    }
  }
  co_return Done{};
}

std::vector<uint64_t> PoolClient::CatalogChanges() const {
  std::vector<uint64_t> changes;
  for (const auto& node : nodes_) changes.push_back(node->membership.control().catalog_changes);
  return changes;
}

Task<Done> PoolClient::SweepAll(Op& op) {
  // For the newest counts of deaths: a death that this client learns of after the walk asks for another one.
  co_await Sync(op, /*raise=*/false);
  if (in_flight_ > 0) co_return Done{};  // it is still due
  // One sweep per node, and all of them look at every block that the walk marks.
  struct All final : Reach {
    void Mark(fabric::FarAddr block, uint64_t bytes) override {
      for (auto& sweep : sweeps) sweep->Mark(block, bytes);
    }
    std::vector<std::unique_ptr<Sweep>> sweeps;
  } all;
  for (auto& node : nodes_) all.sweeps.push_back(std::make_unique<Sweep>(node->allocator));
  const std::vector<uint64_t> catalogs = CatalogChanges();
  {
    const Pin pin = Begin();
    const Result<Done> walked = co_await walk_(op, all).Outcome();
    if (!walked.ok() && walked.error().code() == ErrorCode::kContended)
      co_return Done{};  // not now; it is still due
    if (!walked.ok()) co_return walked.error();
  }
  co_await Sync(op, /*raise=*/true);
  // The walk passes over a table whose dropper has died. Operations that began meanwhile may have published
  // blocks in it, if they did not know yet; only a sweep that begins after them finds those.
  if (CatalogChanges() != catalogs) co_return Done{};  // it is still due
  for (size_t i = 0; i < nodes_.size(); ++i) all.sweeps[i]->WalkEnded(nodes_[i]->membership.known_epoch());

  for (int round = 0; round < kMostGraceRounds; ++round) {
    co_await Sync(op, /*raise=*/true);
    bool ready = true;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const RegistryView view = co_await nodes_[i]->membership.LookAround(op);
      co_await nodes_[i]->allocator.Reclaim(op, view.safe_epoch);
      ready &= all.sweeps[i]->Ready(view);
    }
    if (ready) {
      for (auto& sweep : all.sweeps) co_await sweep->Finish(op);
      co_return Done{};
    }
    co_await op.Pause(GracePause());
  }
  co_return Done{};  // others did not move; the sweep is still due
}

Nanos PoolClient::LongestSearch() const { return options_.lease.lease / kSearchesPerLease; }

Nanos PoolClient::GracePause() const {
  return std::max(options_.lease.lease / kGracePausesPerLease, Nanos(1));
}

Task<Done> PoolClient::GiveUpMemory(Op& op) {
  for (auto& node : nodes_) {
    if (TakesPart(*node)) co_await node->allocator.LeaveAll(op);
  }
  co_return Done{};
}

Task<Done> PoolClient::Leave(Op& op) {
  assert(in_flight_ == 0 && "operations must have ended before their client leaves");
  co_await ComeOnline(op);  // INVARIANT off/5
  for (int round = 0; round < kMostGraceRounds; ++round) {
    const Nanos begun = client_.Now();
    co_await Maintain(op);
    const bool sweep_due = RepairDue();
    // A sweep has waited for others as long as one does. The next one would, too.
    if (sweep_due && client_.Now() - begun >= kMostGraceRounds * GracePause()) break;
    // What a dead client has left is adopted in one round, and its slot is released in a later one. Clients
    // that stay for a short while only would never get to it.
    const bool releasing =
        walk_ && round < kRoundsForBurials && TakesPartEverywhere() &&
        std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return !node->fenced.empty(); });
    if (NeedsGrace() || sweep_due || releasing) {
      co_await op.Pause(GracePause());
      continue;
    }
    const Result<Done> given_up = co_await GiveUpMemory(op).Outcome();
    if (given_up.ok()) {
      // INVARIANT pool/2: other clients take what a client that has left held without a FENCE. So nothing
      // that this one has sent, such as the release of a lock, may take effect when its slot is free.
      if (!Mutant(kLeavesInFlight)) co_await AwaitUnawaited(op);
      for (auto& node : nodes_) {
        if (TakesPart(*node)) co_await node->membership.Leave(op);
      }
      co_return Done{};
    }
    // A client has died since the last look at the registry. The next round repairs it, while this client is
    // still a member of every node.
    if (given_up.error().code() != ErrorCode::kContended || !walk_) co_return given_up.error();
    co_await op.Pause(GracePause());
  }
  co_return Error(ErrorCode::kContended,
                  "other clients did not move past what this one has freed; it is not lost: leave "
                  "again later, or let the lease end");
}

}  // namespace farside::pool
