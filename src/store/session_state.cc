#include "store/session_state.h"

#include <fmt/format.h>

#include <cassert>
#include <thread>

#include "store/engines.h"
#include "store/pool_state.h"

namespace farside::store {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

namespace {

// What was unlinked can be used again when every client has synced twice, and this session has looked.
constexpr int kRoundsToMakeRoom = 6;
// While a task of the session waits, other sessions are nudged whenever it was polled this often.
constexpr int kPollsPerNudge = 256;
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
  while (true) {
    Holder found = Holder::kFree;
    if (holder_.compare_exchange_weak(found, Holder::kOwner, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      return true;
    }
    if (found == Holder::kOwner || found == Holder::kClosed) return false;
    std::this_thread::yield();  // the keeper needs a few trips
  }
}

Error SessionState::NotNow() const {
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

Error SessionState::Stuck() {
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

bool SessionState::BeginBackgroundSync() {
  Holder found = Holder::kFree;
  if (!holder_.compare_exchange_strong(found, Holder::kKeeper, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
    return false;
  }
  RenewIfRecovered();
  // A look at the connection: an idle session would not notice for long that the node is gone.
  if (current_->pool().operations_in_flight() == 0) static_cast<void>(current_->client().Poll());
  if (!current_->broken()) background_sync_.emplace(*current_);
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
    const Status synced = background_sync_->TakeResult();
    if (!synced.ok() && Breaks(registration, synced.error())) registration.Break();
  }
  background_sync_.reset();
}

// ---- before and after an operation -------------------------------------------------------------------

Task<OpenedTable*> SessionState::Prepare(const TableState& table) {
  if (table.pool.get() != &pool_) {
    co_return Error(ErrorCode::kInvalidArgument,
                    fmt::format("table '{}' belongs to another pool than this session", table.info.name));
  }
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
    } else {
      co_return ready.error();
    }
    // The operation has not begun, so nothing was changed by it.
    if (attempt > 0)
      co_return Error(ErrorCode::kUnavailable, "the session was cut off again and again; retry later");
  }
}

Task<OpenedTable*> SessionState::PrepareOn(Registration& registration, const TableState& table) {
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

Task<bool> SessionState::Recover(Registration& registration, Error error, int failures) {
  const ErrorCode code = error.code();
  if (Breaks(registration, error)) registration.Break();
  if (failures > 1) co_return false;
  if (code == ErrorCode::kFenced) co_return true;     // Prepare registers anew
  if (code == ErrorCode::kContended) co_return true;  // Prepare checks that the table still exists
  if (code != ErrorCode::kOutOfMemory) co_return false;
  co_await MakeRoom(registration);
  co_return true;
}

// Deleted memory comes back when every client has synced, and idle ones have no reason of their own to do so.
Task<Done> SessionState::MakeRoom(Registration& registration) {
  for (int round = 0; round < kRoundsToMakeRoom; ++round) {
    pool_.NudgeSessions(this);
    co_await Sync(registration);
  }
  pool::PoolClient& pool = registration.pool();
  for (size_t node = 0; node < pool.nodes(); ++node)
    pool.allocator(static_cast<fabric::NodeId>(node)).ExpectRoom();
  co_return Done{};
}

Status SessionState::Reconnect() {
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
  while (background_sync_.has_value() && !background_sync_->done() && Poll()) continue;
  if (background_sync_.has_value()) FinishBackgroundSync();
  concurrency_ = 1;
  current_->client().set_concurrency(1);
  running_ = false;
  DropRetired();
  GiveBack();
}

bool SessionState::Poll() {
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
  Status left = fabric::Run(client, current_->Leave(op), [&] {
    return WaitForOthersUnless([&] { return client.Now() >= deadline; });
  });
  if (left.ok()) op.End(OpKind::kMaintenance, OpOutcome::kDone);
  return left;
}

void SessionState::AwaitGrace(Nanos deadline) {
  pool::PoolClient& pool = current_->pool();
  for (int round = 0; pool.NeedsGrace() && current_->client().Now() < deadline; ++round) {
    if (round < kRoundsToMakeRoom) {
      pool_.NudgeSessions(this);
    } else {
      WaitForOthers();
    }
    Op op(current_->client(), OpKind::kMaintenance);
    const Status kept = fabric::Run(current_->client(), pool.KeepUp(op));
    if (!kept.ok()) return;  // Leave reports it
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
  }
}

// ---- what it cost ----------------------------------------------------------------------------------------

Traffic SessionState::traffic() {
  const Turn turn(*this);
  fabric::Counters sum = before_;
  if (!turn.taken()) return TrafficOf(sum);
  for (const auto& retired : retired_) sum.Add(retired->client().counters());
  sum.Add(current_->client().counters());
  return TrafficOf(sum);
}

}  // namespace farside::store
