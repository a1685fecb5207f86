#include "store/session_state.h"

#include <fmt/format.h>

#include <cassert>
#include <chrono>
#include <thread>

#include "base/bytes.h"
#include "store/engines.h"
#include "store/pool_state.h"

namespace farside::store {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

namespace {

// How often a session that leaves nudges the others before it only waits for them.
constexpr int kRoundsToNudge = 6;
// A session that was idle for this part of a lease gives up its chunks.
constexpr int kDisownsPerLease = 8;
// A session that has waited for its nodes for this part of a lease leaves it to its next operation to connect
// anew.
constexpr int kWaitsPerLease = 4;
// What an evacuation has unlinked can be used again when every client has synced twice, and this session has
// looked; later if other clients are slow, or if tables cannot unlink all of it at once.
constexpr int kFewestRoundsAfterEvacuation = 6;
constexpr int kMostRoundsAfterEvacuation = 256;
// An operation waits for the evacuation of another one.
constexpr int kMostPausesForEvacuation = 10'000;
constexpr Nanos kPauseForEvacuation = std::chrono::microseconds(100);
// While a task of the session waits, other sessions are nudged whenever it was polled this often.
constexpr int kPollsPerNudge = 256;
// How often a call looks whether the keeper is done with the session before it sleeps between two looks.
constexpr int kLooksAtKeeper = 256;
constexpr auto kPauseForKeeper = std::chrono::microseconds(100);
// An epoch is learned by one sync and published by the next, and the stamp of a wait is known only after one
// more.
constexpr int kMostIdleNudges = 4;

Traffic TrafficOf(const fabric::Counters& counters) {
  const fabric::OpTally all = counters.Total();
  fabric::OpTally kept;
  for (const OpOutcome outcome : {OpOutcome::kDone, OpOutcome::kRefused, OpOutcome::kFailed})
    kept.Add(counters.at(OpKind::kMaintenance, outcome));
  Traffic traffic;
  traffic.operations = all.operations - kept.operations;
  traffic.trips = all.end_to_end_trips - kept.end_to_end_trips;
  traffic.maintenance_trips = all.maintenance_trips + kept.end_to_end_trips;
  for (const fabric::VerbTally& tally : all.by_purpose) {
    traffic.bytes_read += tally.bytes_read;
    traffic.bytes_written += tally.bytes_written;
  }
  return traffic;
}

}  // namespace

Result<std::unique_ptr<SessionState>> SessionState::Join(PoolState& pool) {
  std::unique_ptr<SessionState> session(new SessionState(pool));
  if (Status joined = session->Reconnect(); !joined.ok()) return joined.error();
  session->most_workers_ = session->current_->client().worthwhile_concurrency();
  pool.Add(*session);
  return session;
}

SessionState::~SessionState() {
  const bool joined = current_ != nullptr;
  if (!joined || holder_.load(std::memory_order_relaxed) == Holder::kClosed) return;
  [[maybe_unused]] const Status closed = Close();  // a destructor cannot report it
  assert(holder_.load(std::memory_order_relaxed) == Holder::kClosed &&
         "a session must not end while it is in use");
}

// ---- the holder ------------------------------------------------------------------------------------------

bool SessionState::TakeSlowly() {
  for (int looks = 0;; ++looks) {
    Holder found = Holder::kFree;
    if (holder_.compare_exchange_weak(found, Holder::kOwner, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      return true;
    }
    if (found == Holder::kOwner || found == Holder::kClosed) return false;
    if (found == Holder::kKeeper) wanted_.store(true, std::memory_order_relaxed);
    // The keeper needs a few trips; at a node that hangs, a part of a lease.
    if (looks < kLooksAtKeeper) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPauseForKeeper);
    }
  }
}

Error SessionState::NotNow() const {
  if (forked()) return ForkGuard::Refusal();
  if (holder_.load(std::memory_order_relaxed) == Holder::kClosed)
    return Error(ErrorCode::kInvalidArgument, "the session is closed");
  return Error(
      ErrorCode::kInvalidArgument,
      "the session is in use: inside of a task call its Async() form, and use one session per thread");
}

Error SessionState::NotRunning() {
  return Error(ErrorCode::kInvalidArgument,
               "a task of a session runs in Session::Run or Session::RunAll, and nowhere else");
}

Error SessionState::Stuck() const {
  if (forked()) return ForkGuard::Refusal();
  return Error(ErrorCode::kInvalidArgument,
               "a task waits for something that is not an operation of this session");
}

Error SessionState::TooLarge(size_t key_bytes, size_t value_bytes) {
  if (key_bytes > kMaxKeyBytes) {
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the key has {} bytes; keys have at most {}", key_bytes, kMaxKeyBytes));
  }
  return Error(ErrorCode::kInvalidArgument,
               fmt::format("the value has {} bytes; values have at most {}", value_bytes, kMaxValueBytes));
}

Error SessionState::CutOff() {
  return Error(ErrorCode::kUnavailable, "the session was cut off again and again; retry later");
}

bool SessionState::Breaks(const Registration& registration, const Error& error) {
  if (error.code() == ErrorCode::kFenced) return true;
  const bool lost = error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kOutcomeUnknown;
  return lost && !registration.degraded();
}

void SessionState::RenewIfRecovered() {
  if (current_->broken() || !current_->degraded()) return;
  if (current_->joined_at() != pool_.recoveries()) {
    current_->Break();
  } else {
    pool_.RequestProbe();
  }
}

bool SessionState::TakeForKeeper() {
  Holder found = Holder::kFree;
  const bool taken = holder_.compare_exchange_strong(found, Holder::kKeeper, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
  if (taken) wanted_.store(false, std::memory_order_relaxed);  // an owner that waits says so again and again
  return taken;
}

bool SessionState::NoteUse() {
  const uint64_t begun = current_->pool().operations_begun();
  if (begun == operations_seen_) return false;
  operations_seen_ = begun;
  used_at_ = current_->client().Now();
  disowned_ = false;
  return true;
}

bool SessionState::BeginBackgroundSync(Visit visit) {
  if (!TakeForKeeper()) return false;
  RenewIfRecovered();
  // A look at the connection: an idle session would not notice for long that the node is gone.
  if (current_->pool().operations_in_flight() == 0) static_cast<void>(current_->client().Poll());
  const bool used = NoteUse();
  const Nanos idle = current_->client().Now() - used_at_;
  const bool long_idle = !used && idle >= pool_.client_options().lease.lease / kDisownsPerLease;
  Errand errand = visit == Visit::kNudge || !used ? Errand::kRest : Errand::kSync;
  if (long_idle && !disowned_ && visit == Visit::kBeat) errand = Errand::kDisown;
  if (!current_->broken()) background_sync_.emplace(*current_, errand, &wanted_);
  return true;
}

bool SessionState::BeginRest(bool& online) {
  if (!TakeForKeeper()) {
    online = true;
    return false;
  }
  pool::PoolClient& pool = current_->pool();
  const bool used = NoteUse();
  const bool rests = !current_->broken() && !used && pool.idle() && (pool.online() || pool.NeedsGrace());
  online |= pool.online() || pool.NeedsGrace();
  if (!rests) {
    holder_.store(Holder::kFree, std::memory_order_release);
    return false;
  }
  background_sync_.emplace(*current_, Errand::kRest, &wanted_);
  return true;
}

bool SessionState::ContinueBackgroundSync() {
  if (background_sync_.has_value() && !background_sync_->done()) {
    background_sync_->KeepPollsShort();
    static_cast<void>(current_->client().Poll());
    if (!background_sync_->done()) return false;
  }
  if (background_sync_.has_value()) FinishBackgroundSync();
  holder_.store(Holder::kFree, std::memory_order_release);
  return true;
}

void SessionState::FinishBackgroundSync() {
  if (background_sync_->done()) {
    Registration& registration = background_sync_->registration();
    const Result<bool> disowned = background_sync_->TakeResult();
    if (!disowned.ok() && Breaks(registration, disowned.error())) registration.Break();
    if (disowned.ok() && *disowned) disowned_ = true;
    // To give up chunks takes a pin, and while the keeper has the session, its owner begins nothing.
    if (background_sync_->errand() != Errand::kSync)
      operations_seen_ = registration.pool().operations_begun();
  }
  background_sync_.reset();
}

// ---- before and after an operation -------------------------------------------------------------------

Task<OpenedTable*> SessionState::Prepare(const TableState& table) {
  if (table.pool.get() != &pool_) {
    co_return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("table '{}' belongs to another pool than this session", Escape(table.info.name)));
  }
  const Nanos began = current_->client().Now();
  for (int attempt = 0;; ++attempt) {
    if (current_->broken()) {
      if (Status joined = Reconnect(); !joined.ok()) co_return joined.error();
    }
    Registration& registration = *current_;
    Result<OpenedTable*> ready = co_await PrepareOn(registration, table).Outcome();
    if (ready.ok()) {
      // Another task of the session may have registered anew meanwhile.
      if (current_.get() == &registration) co_return *ready;
    } else if (Breaks(registration, ready.error())) {
      registration.Break();
      // Its nodes hang, and it has waited for them: to connect anew would be to wait for them once more.
      const bool has_waited =
          registration.client().Now() - began >= pool_.client_options().lease.lease / kWaitsPerLease;
      if (has_waited && ready.error().code() != ErrorCode::kFenced) co_return ready.error();
    } else {
      co_return ready.error();
    }
    // The operation has not begun, so nothing was changed by it.
    if (attempt > 0) co_return CutOff();
  }
}

Task<OpenedTable*> SessionState::PrepareOn(Registration& registration, const TableState& table) {
  // From here to the operation: another task of the session must not go offline.
  const pool::PoolClient::UnpinnedWait stays_online(registration.pool());
  if (!registration.pool().online()) {
    Op op(registration.client(), OpKind::kMaintenance);
    co_await registration.pool().ComeOnline(op);
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
    pool_.NoteOnline();
  }
  if (sync_requested_.load(std::memory_order_relaxed) || registration.pool().MaintenanceDueByCount()) {
    co_await Sync(registration);
    RenewIfRecovered();
  }
  OpenedTable* opened = registration.Find(table);
  if (opened == nullptr) {
    const Result<OpenedTable*> made = registration.Open(table);
    if (!made.ok()) co_return made.error();
    opened = *made;
  }
  if (!opened->valid()) {
    Op op(registration.client(), OpKind::kMaintenance);
    co_await registration.tables().Validate(op, opened->table);
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
  }
  co_return opened;
}

Task<Done> SessionState::Sync(Registration& registration) {
  sync_requested_.store(false, std::memory_order_relaxed);
  // A table that waits for grace overflows until idle sessions of this process have synced, and the keeper
  // may not come soon. A few nudges are enough if those sessions are what it waits for; otherwise more nudges
  // do not help.
  if (!registration.pool().WaitsForGrace()) {
    idle_nudges_ = 0;
  } else if (idle_nudges_ < kMostIdleNudges) {
    ++idle_nudges_;
    pool_.NudgeIdleSessions(this);
  } else {
    pool_.NudgeIdleSessionsRarely(this);
  }
  Op op(registration.client(), OpKind::kMaintenance);
  pool::PoolClient& pool = registration.pool();
  co_await pool.KeepUp(op);
  if (pool.RepairDue() && pool.operations_in_flight() == 0) {
    // Damage that a walk through all tables finds is not the fault of this operation.
    const Status repaired = co_await pool.Maintain(op).Outcome();
    if (!repaired.ok() && Breaks(registration, repaired.error())) co_return repaired.error();
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<bool> SessionState::Recover(Registration& registration, Error error, int failures, RoomEffort& effort) {
  const ErrorCode code = error.code();
  if (Breaks(registration, error)) registration.Break();
  if (code == ErrorCode::kOutOfMemory) {
    if (effort.exhausted()) {
      NoteFull(registration, effort);
      co_return false;
    }
    const Result<Done> made = co_await MakeRoom(registration, effort).Outcome();
    if (made.ok()) co_return true;
    if (!Breaks(registration, made.error())) co_return made.error();
    // The operation has changed nothing, and is tried once more by a new registration.
    registration.Break();
    if (effort.cut_off) co_return CutOff();
    effort.search.reset();
    effort.evacuated = false;
    effort.cut_off = true;
    co_return true;
  }
  if (failures > 1) co_return false;
  if (code == ErrorCode::kFenced) co_return true;     // Prepare registers anew
  if (code == ErrorCode::kContended) co_return true;  // Prepare checks that the table still exists
  co_return false;
}

// Deleted memory comes back when every client has moved on, and idle ones of this process have no reason of
// their own to do so at once. Only when none of it waits for them any more are sparse chunks evacuated.
Task<Done> SessionState::MakeRoom(Registration& registration, RoomEffort& effort) {
  using Patience = pool::RoomSearch::Patience;
  std::optional<pool::RoomSearch>& search = effort.search;
  pool::PoolClient& pool = registration.pool();
  const Nanos lease = pool_.client_options().lease.lease;
  const bool known_full =
      effort.answered ||
      (full_at_.has_value() && registration.client().Now() - *full_at_ < lease / kDisownsPerLease);
  // The session may have registered anew since the search began.
  if (!search.has_value() || &search->pool() != &pool)
    search.emplace(pool, known_full ? Patience::kBrief : Patience::kPatient);
  if (!effort.unlinked) effort.unlinked = co_await UnlinkHeld(registration);
  Op op(registration.client(), OpKind::kMaintenance);
  pool_.NudgeSessions(this);
  co_await search->Round(op);
  if (pool.RepairDue()) co_await Sync(registration);
  if (!effort.evacuated && (search->concluded() || !pool.NeedsGrace()))
    effort.evacuated = co_await Evacuate(registration, effort.all_tables);
  if (!search->concluded()) {
    pool_.NudgeSessions(this);
    co_await op.Pause(search->PauseBetweenRounds());
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

// Only a search that has waited for the answers of other clients says that the next ones need not; otherwise
// a session that keeps failing would not hear of what they give back.
void SessionState::NoteFull(Registration& registration, const RoomEffort& effort) {
  if (effort.search->patient()) full_at_ = registration.client().Now();
}

Status SessionState::SearchForRoom(RoomEffort& effort) {
  return Administer<Done>(
      [&](Op& /*op*/, Registration& registration) { return MakeRoom(registration, effort); },
      [] { return false; });
}

// A table that holds back what was replaced or deleted has noted where an operation has failed. The search
// waits until it can be used. True: nothing is noted any more.
Task<bool> SessionState::UnlinkHeld(Registration& registration) {
  pool::PoolClient& pool = registration.pool();
  const pool::PoolClient::UnpinnedWait stays_online(pool);
  Op op(registration.client(), OpKind::kMaintenance);
  co_await pool.ComeOnline(op);
  const std::unique_ptr<index::Evacuation> evacuation = registration.NewEvacuation();
  if (evacuation == nullptr) co_return true;
  const bool more = co_await evacuation->Unlink(op);
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return !more;
}

// INVARIANT evac/4: the operation that has failed holds neither a pin nor a place in the queue of its key.
Task<bool> SessionState::Evacuate(Registration& registration, bool all_tables) {
  pool::PoolClient& pool = registration.pool();
  const pool::PoolClient::UnpinnedWait stays_online(pool);
  Op op(registration.client(), OpKind::kMaintenance);
  co_await pool.ComeOnline(op);
  for (int pause = 0; registration.evacuating() && pause < kMostPausesForEvacuation; ++pause)
    co_await op.Pause(kPauseForEvacuation);
  const std::unique_ptr<index::Evacuation> evacuation = registration.NewEvacuation();
  if (evacuation == nullptr) co_return false;
  co_await evacuation->Choose(op);
  if (!evacuation->has_victims()) co_return false;
  if (all_tables) co_await registration.OpenForEvacuation(op, *evacuation);
  co_await evacuation->Move(op);
  bool more = true;
  for (int round = 0; round < kMostRoundsAfterEvacuation; ++round) {
    if (round >= kFewestRoundsAfterEvacuation) {
      if (!more && !pool.NeedsGrace()) break;
      // Another thread may have a session that is waited for: the keeper, or one that nudges.
      co_await op.Pause(kPauseForEvacuation);
    }
    if (more) more = co_await evacuation->Unlink(op);
    pool_.NudgeSessions(this);
    co_await Sync(registration);
  }
  pool.ExpectRoom();
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return true;
}

// Tasks that run together, such as the items of a batch, find one after the other that the session is cut
// off. If no node answers, only the first of them waits for that.
Status SessionState::Reconnect() {
  if (!running_) return Register();
  const Nanos began = current_->client().Now();
  if (out_of_reach_.has_value() && began < out_of_reach_->until) return out_of_reach_->why;
  const Status registered = Register();
  const Nanos ended = current_->client().Now();
  if (!registered.ok()) out_of_reach_.emplace(OutOfReach{registered.error(), ended + (ended - began)});
  return registered;
}

Status SessionState::Register() {
  if (forked()) return ForkGuard::Refusal();
  const uint64_t recoveries = pool_.recoveries();
  Result<std::unique_ptr<fabric::Client>> client = pool_.fabric().Connect();
  if (!client.ok()) return client.error();
  Result<std::unique_ptr<Registration>> joined = Join(**client);
  if (!joined.ok()) return joined.error();
  (*joined)->OwnClient(std::move(*client));
  (*joined)->set_joined_at(recoveries);
  // It is not dropped here: a task that its client's Poll has resumed may be the caller.
  if (current_ != nullptr) retired_.push_back(std::move(current_));
  current_ = std::move(*joined);
  operations_seen_ = 0;
  pool_.NoteOnline();
  current_->client().set_concurrency(concurrency_);
  return OkStatus();
}

Result<std::unique_ptr<Registration>> SessionState::Join(fabric::Client& client) {
  Op op(client, OpKind::kMaintenance);
  Result<std::unique_ptr<Registration>> joined =
      fabric::Run(client, Registration::Join(op, client, MakeEngine, pool_.client_options()),
                  [this] { return WaitForOthersUnless([] { return false; }); });  // joining bounds itself
  if (joined.ok()) op.End(OpKind::kMaintenance, OpOutcome::kDone);
  return joined;
}

void SessionState::DropRetired() {
  std::erase_if(retired_, [this](const std::unique_ptr<Registration>& retired) {
    if (!retired->pool().idle()) return false;
    before_.Add(retired->client().counters());
    return true;
  });
}

void SessionState::WaitForOthers() { pool_.WaitForOthers(this); }

Task<Done> SessionState::SearchTogether(const TableState& table, std::span<index::Search> searches) {
  if (forked()) co_return ForkGuard::Refusal();
  if (!running_) co_return NotRunning();
  OpenedTable* opened = Ready(table);
  if (opened == nullptr) opened = co_await Prepare(table);
  Op op(current_->client(), OpKind::kSearch);
  co_await opened->index().SearchTogether(op, searches);
  co_return Done{};
}

// ---- running tasks ---------------------------------------------------------------------------------------

Status SessionState::BeginRunning(size_t tasks) {
  if (!Take()) return NotNow();
  running_ = true;
  concurrency_ = tasks;
  current_->client().set_concurrency(tasks);
  return OkStatus();
}

void SessionState::EndRunning() {
  if (forked()) return;
  while (background_sync_.has_value() && !background_sync_->done() && Poll()) continue;
  if (background_sync_.has_value()) FinishBackgroundSync();
  concurrency_ = 1;
  current_->client().set_concurrency(1);
  running_ = false;
  DropRetired();
  GiveBack();
}

bool SessionState::Poll() {
  if (forked()) return false;
  if (!running_ && !retired_.empty()) DropRetired();
  // Operations that take long must not keep the session from syncing.
  if (running_ && !background_sync_.has_value() && !current_->broken() &&
      sync_requested_.load(std::memory_order_relaxed)) {
    sync_requested_.store(false, std::memory_order_relaxed);
    background_sync_.emplace(*current_);
  }
  bool progress = current_->client().Poll();
  for (size_t i = 0; i < retired_.size(); ++i) progress |= retired_[i]->client().Poll();
  if (background_sync_.has_value() && background_sync_->done()) FinishBackgroundSync();
  if (!running_ && ++polls_ % kPollsPerNudge == 0) pool_.NudgeSessions(this);
  return progress;
}

// ---- leaving -----------------------------------------------------------------------------------------

Status SessionState::Close() {
  if (!Take()) return NotNow();
  if (!current_->pool().idle()) {
    GiveBack();
    return Error(ErrorCode::kInvalidArgument, "tasks of the session have not ended; destroy them first");
  }
  Status left = OkStatus();
  // Other clients have taken over, or will take over, what a broken registration held.
  if (!current_->broken()) left = Leave();
  if (!left.ok() && left.error().code() == ErrorCode::kFenced) left = OkStatus();
  pool_.Remove(*this);
  DropRetired();
  holder_.store(Holder::kClosed, std::memory_order_release);
  return left;
}

Status SessionState::Leave() {
  fabric::Client& client = current_->client();
  // A little more than a lease: a client that is silent for a lease is fenced, and nothing waits for it any
  // more.
  const Nanos lease = pool_.client_options().lease.lease;
  const Nanos deadline = client.Now() + lease + lease / 4;
  AwaitGrace(deadline);
  Op op(client, OpKind::kMaintenance);
  Status left = fabric::Run(client, current_->Leave(op),
                            [&] { return WaitForOthersUnless([&] { return client.Now() >= deadline; }); });
  if (left.ok()) op.End(OpKind::kMaintenance, OpOutcome::kDone);
  return left;
}

void SessionState::AwaitGrace(Nanos deadline) {
  pool::PoolClient& pool = current_->pool();
  for (int round = 0; pool.NeedsGrace() && current_->client().Now() < deadline; ++round) {
    if (round < kRoundsToNudge) {
      pool_.NudgeSessions(this);
    } else {
      WaitForOthers();
    }
    Op op(current_->client(), OpKind::kMaintenance);
    const Result<bool> kept = fabric::Run(current_->client(), Run(op, pool, Errand::kRest));
    if (!kept.ok()) return;  // Leave reports it
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
  }
}

// ---- what it cost ----------------------------------------------------------------------------------------

Traffic SessionState::traffic() {
  if (forked()) return {};
  const Turn turn(*this);
  fabric::Counters sum = before_;
  if (!turn.taken()) return TrafficOf(sum);
  for (const auto& retired : retired_) sum.Add(retired->client().counters());
  sum.Add(current_->client().counters());
  return TrafficOf(sum);
}

}  // namespace farside::store
