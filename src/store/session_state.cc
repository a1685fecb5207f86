#include "store/session_state.h"

#include <fmt/format.h>

#include <cassert>
#include <thread>

#include "store/pool_state.h"

namespace farside::store {

using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;

namespace {

// What was unlinked can be used again when everybody has moved on twice, and this session has looked.
constexpr int kRoundsToMakeRoom = 6;
// While a task of the session waits, others are moved on whenever it was polled this often.
constexpr int kPollsUntilOthersMove = 256;
// An epoch is learned by one sync and published by the next, and the stamp of a wait is known only after one more.
constexpr int kMostIdleNudges = 4;

constexpr Nanos kTick = std::chrono::milliseconds(1);

// Ends with its visit.
Task<Done> Tick(Op& op) {
  while (true) co_await op.Pause(kTick);
}

void Add(Traffic& traffic, Registration& registration) {
  const fabric::OpTally all = registration.client().counters().Total();
  const fabric::OpTally kept = [&] {
    fabric::OpTally sum;
    for (const OpOutcome outcome : {OpOutcome::kDone, OpOutcome::kRefused, OpOutcome::kFailed})
      sum.Add(registration.client().counters().at(OpKind::kMaintenance, outcome));
    return sum;
  }();
  traffic.operations += all.operations - kept.operations;
  traffic.trips += all.end_to_end_trips - kept.end_to_end_trips;
  traffic.maintenance_trips += all.maintenance_trips + kept.end_to_end_trips;
  for (const fabric::VerbTally& tally : all.by_purpose) {
    traffic.bytes_read += tally.bytes_read;
    traffic.bytes_written += tally.bytes_written;
  }
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
  [[maybe_unused]] const Status closed = Close();  // nobody is there to be told
  assert(holder_.load(std::memory_order_relaxed) == Holder::kClosed &&
         "a session must not end while it is in use");
}

// ---- whose turn it is --------------------------------------------------------------------------------

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
    pool_.AskForRecovery();
  }
}

bool SessionState::BeginKeeping() {
  Holder found = Holder::kFree;
  if (!holder_.compare_exchange_strong(found, Holder::kKeeper, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
    return false;
  }
  RenewIfRecovered();
  // A look at the connection: whoever does nothing would not notice for long that the node is gone.
  if (current_->pool().operations_in_flight() == 0) static_cast<void>(current_->client().Poll());
  if (!current_->broken()) {
    keeper_sync_.emplace(*current_);
    keeper_sync_->background.task.Start();
  }
  return true;
}

bool SessionState::ContinueKeeping() {
  if (keeper_sync_.has_value() && !keeper_sync_->background.task.done()) {
    if (!keeper_sync_->tick.has_value()) {
      keeper_sync_->tick.emplace(Tick(keeper_sync_->background.op));
      keeper_sync_->tick->Start();
    }
    static_cast<void>(current_->client().Poll());
    if (!keeper_sync_->background.task.done()) return false;
  }
  if (keeper_sync_.has_value()) {
    const Status kept = keeper_sync_->background.task.TakeResult();
    if (kept.ok()) keeper_sync_->background.op.End(OpKind::kMaintenance, OpOutcome::kDone);
    if (!kept.ok() && Breaks(*current_, kept.error())) current_->Break();
    keeper_sync_.reset();
  }
  holder_.store(Holder::kFree, std::memory_order_release);
  return true;
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
      // Another task may have registered anew meanwhile.
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
  if (wanted_.load(std::memory_order_relaxed) || registration.pool().MaintenanceDueByCount()) {
    co_await KeepUp(registration);
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
    co_await registration.session().tables().Validate(op, opened->table);
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
  }
  co_return opened;
}

Task<Done> SessionState::KeepUp(Registration& registration) {
  wanted_.store(false, std::memory_order_relaxed);
  // Those of this process that do nothing would be waited for until the keeper comes by, while tables overflow. A few
  // rounds are enough, if it is them; if it is others, rounds are in vain.
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

Task<bool> SessionState::Recover(Registration& registration, Error error, int attempt) {
  if (Breaks(registration, error)) registration.Break();
  if (attempt > 0) co_return false;
  if (error.code() == ErrorCode::kFenced) co_return true;  // Prepare registers anew
  if (error.code() == ErrorCode::kContended)
    co_return true;  // Prepare looks whether the table is still there
  if (error.code() != ErrorCode::kOutOfMemory) co_return false;
  co_await MakeRoom(registration);
  co_return true;
}

// What was deleted is given back when everybody has moved on, and some may have had no reason to.
Task<Done> SessionState::MakeRoom(Registration& registration) {
  for (int round = 0; round < kRoundsToMakeRoom; ++round) {
    pool_.NudgeSessions(this);
    co_await KeepUp(registration);
  }
  pool::PoolClient& pool = registration.pool();
  for (size_t node = 0; node < pool.nodes(); ++node)
    pool.allocator(static_cast<fabric::NodeId>(node)).ExpectRoom();
  co_return Done{};
}

Status SessionState::Reconnect() {
  const uint64_t recoveries = pool_.recoveries();
  Result<std::unique_ptr<Registration>> joined =
      Registration::Join(pool_.fabric(), pool_.client_options(), [this] { WaitForOthers(); });
  if (!joined.ok()) return joined.error();
  (*joined)->set_joined_at(recoveries);
  if (current_ != nullptr) retired_.push_back(std::move(current_));
  if (!running_) DropRetired();
  current_ = std::move(*joined);
  current_->client().set_concurrency(concurrency_);
  return OkStatus();
}

void SessionState::DropRetired() {
  std::erase_if(retired_, [this](const std::unique_ptr<Registration>& retired) {
    if (!retired->pool().idle()) return false;
    Add(before_, *retired);
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

// ---- running tasks -----------------------------------------------------------------------------------

Status SessionState::BeginRunning(size_t tasks) {
  if (!Take()) return NotNow();
  running_ = true;
  concurrency_ = tasks;
  current_->client().set_concurrency(tasks);
  return OkStatus();
}

void SessionState::EndRunning() {
  while (background_sync_.has_value() && !background_sync_->task.done() && Poll()) continue;
  if (background_sync_.has_value()) FinishBackgroundSync();
  concurrency_ = 1;
  current_->client().set_concurrency(1);
  running_ = false;
  DropRetired();
  GiveBack();
}

bool SessionState::Poll() {
  // Operations that go on for long give their signs of life in between.
  if (running_ && !background_sync_.has_value() && !current_->broken() &&
      wanted_.load(std::memory_order_relaxed)) {
    wanted_.store(false, std::memory_order_relaxed);
    background_sync_.emplace(*current_);
    background_sync_->task.Start();
  }
  bool progress = current_->client().Poll();
  for (size_t i = 0; i < retired_.size(); ++i) progress |= retired_[i]->client().Poll();
  if (background_sync_.has_value() && background_sync_->task.done()) FinishBackgroundSync();
  if (!running_ && ++polls_ % kPollsUntilOthersMove == 0) pool_.NudgeSessions(this);
  return progress;
}

void SessionState::FinishBackgroundSync() {
  if (background_sync_->task.done()) {
    const Status kept = background_sync_->task.TakeResult();
    if (kept.ok()) background_sync_->op.End(OpKind::kMaintenance, OpOutcome::kDone);
    if (!kept.ok() && Breaks(background_sync_->registration, kept.error()))
      background_sync_->registration.Break();
  }
  background_sync_.reset();
}

// ---- leaving -----------------------------------------------------------------------------------------

Status SessionState::Close() {
  if (!Take()) return NotNow();
  if (!current_->pool().idle()) {
    GiveBack();
    return Error(ErrorCode::kInvalidArgument, "tasks of the session have not ended; destroy them first");
  }
  Status left = OkStatus();
  // Others have, or will find, what a registration that was cut off had.
  if (!current_->broken()) left = Leave();
  if (!left.ok() && left.error().code() == ErrorCode::kFenced) left = OkStatus();
  pool_.Remove(*this);
  DropRetired();
  holder_.store(Holder::kClosed, std::memory_order_release);
  return left;
}

Status SessionState::Leave() {
  fabric::Client& client = current_->client();
  // A little more than a lease: whoever is silent for one is cut off, and then nobody waits for it any more.
  const Nanos lease = pool_.client_options().lease.lease;
  const Nanos deadline = client.Now() + lease + lease / 4;
  AwaitGrace(deadline);
  Op op(client, OpKind::kMaintenance);
  Status left = RunBlocking(
      client, current_->session().Leave(op), [this] { WaitForOthers(); },
      [&] { return client.Now() >= deadline; });
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
    if (!kept.ok()) return;  // Leave tells
    op.End(OpKind::kMaintenance, OpOutcome::kDone);
  }
}

Traffic SessionState::traffic() {
  const Turn turn(*this);
  if (!turn.taken()) return before_;
  Traffic traffic = before_;
  for (const auto& retired : retired_) Add(traffic, *retired);
  Add(traffic, *current_);
  return traffic;
}

}  // namespace farside::store
