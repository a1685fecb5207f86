// What is behind a farside::Session: its registration in the pool, and what an operation needs before and
// after it.
//
// Two threads may use it: the session's owner, and the pool's keeper, which syncs for sessions that are idle
// (pool_state.h). `holder_` says which of them has it. A call of the owner takes it and gives it back, the
// only atomic operations of the call; the keeper is rarely there.
//
//   free ---- the owner calls ----> owner ---- the call returns ----> free
//   free ---- the keeper comes ---> keeper --- a few trips later ---> free
//   owner --- Close --------------> closed
//
// A keeper that finds the session in use requests a sync (`sync_requested_`), and the owner's next operation
// makes it. A session that is not used goes offline (pool/presence.cc), and its next operation comes online
// first.
//
// In a child of fork the session cannot be taken, whatever `holder_` is.
//
// If the client was fenced, an operation that changed nothing ends with kFenced. The session then registers
// anew, and the operation is tried once more. The old registration stays until no task is in the middle of an
// operation on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fork_guard.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "farside/result.h"
#include "farside/run_tasks.h"
#include "farside/session.h"
#include "farside/task.h"
#include "index/index.h"
#include "pool/memory/block.h"
#include "pool/room.h"
#include "store/background_sync.h"
#include "store/registration.h"
#include "store/requests.h"
#include "store/table_state.h"

namespace farside::store {

class PoolState;

static_assert(kMaxKeyBytes == pool::kMaxKeyBytes && kMaxValueBytes == pool::kMaxValueBytes);

class SessionState {
 public:
  // Joins the pool, which must outlive the session.
  static Result<std::unique_ptr<SessionState>> Join(PoolState& pool);
  SessionState(const SessionState&) = delete;
  SessionState& operator=(const SessionState&) = delete;
  ~SessionState();

  // ---- calls of the owner

  // One operation (requests.h).
  template <class Request>
  Result<typename Request::Answer> Perform(const TableState& table, Request request);
  // The same, as a task that runs in this session.
  template <class Request>
  Task<typename Request::Answer> PerformTask(const TableState& table, Request request) {
    return Attempts(table, request, Caller::kTask, std::nullopt);
  }
  // Whether SearchTogether saves trips.
  bool SearchesTogether(const TableState& table) {
    OpenedTable* const opened = current_->Find(table);
    return opened != nullptr && opened->index().searches_together();
  }
  // Searches some keys by trips that they share (Index::SearchTogether), as a task that runs in this session.
  // Searches that it leaves open are to be performed one by one; PerformTask also handles every error.
  Task<Done> SearchTogether(const TableState& table, std::span<index::Search> searches);
  // Tells the index that an operation on the key comes soon. To be called by a task of the session.
  void Anticipate(const TableState& table, std::string_view key) {
    OpenedTable* const opened = current_->Find(table);
    if (opened != nullptr) opened->index().Anticipate(key);
  }

  // From BeginRunning to EndRunning, `tasks` tasks run in this session, and Poll makes them progress.
  Status BeginRunning(size_t tasks);
  void EndRunning();
  bool Poll();
  // Runs a task that may take longer than a lease; the session syncs beside it.
  template <class T>
  Result<T> RunLong(Task<T> task);
  // Why Poll returned false: a task waits for something that is not an operation of this session, or has
  // forked.
  Error Stuck() const;

  // Work on the pool rather than on a table: runs `make_task(op, registration)`, which may have to wait for
  // other clients, until `give_up()` returns true.
  template <class T, class MakeTask, class GiveUp>
  Result<T> Administer(MakeTask make_task, GiveUp give_up);

  Status Close();
  Traffic traffic();

  // Memory for the tasks of batches, and for the items that they leave open.
  std::vector<Task<Done>>& workers() { return workers_; }
  std::vector<size_t>& open_items() { return open_items_; }

  // ---- calls of any thread

  // Whether this process is a child of the one that made the session. Then nothing of it may be used, and its
  // holder is whichever thread of the parent had it.
  bool forked() const { return guard_.forked(); }
  // Syncs on behalf of the owner, unless the session is in use. True: call ContinueBackgroundSync, by the
  // same thread, until it returns true. False: the session is in use; RequestSync makes its owner sync.
  // kNudge: another session waits for this one, which goes offline.
  enum class Visit : uint8_t { kBeat, kNudge };
  bool BeginBackgroundSync(Visit visit);
  bool ContinueBackgroundSync();
  // A look by the keeper: a session without an operation since the last look goes offline. True: call
  // ContinueBackgroundSync. `online` becomes true if the session is worth another look soon.
  bool BeginRest(bool& online);
  void RequestSync() { sync_requested_.store(true, std::memory_order_relaxed); }
  // How many tasks at once an operation on many keys should have.
  size_t most_workers() const { return most_workers_; }

  // What was done for an operation that found no room.
  struct RoomEffort {
    std::optional<pool::RoomSearch> search;
    bool unlinked = false;
    bool evacuated = false;
    bool cut_off = false;     // once
    bool answered = false;    // other clients had their time to answer, in an earlier search of the same call
    bool all_tables = false;  // records of tables that this client has not opened are moved, too
    bool exhausted() const { return search.has_value() && search->concluded(); }
  };
  // Work on the pool: one round of the search for room, after something found none.
  Status SearchForRoom(RoomEffort& effort);

  // ---- for tests and tools, between calls
  Registration& registration() { return *current_; }
  // The session ends without leaving the pool.
  void Abandon() { current_->Break(); }

 private:
  enum class Holder : uint8_t { kFree, kOwner, kKeeper, kClosed };
  enum class Caller : uint8_t { kOwner, kTask };

  // Holds the session for the owner, for the time of a call.
  class Turn {
   public:
    explicit Turn(SessionState& session) : session_(session), taken_(session.Take()) {}
    ~Turn() {
      if (taken_) session_.GiveBack();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    bool taken() const { return taken_; }

   private:
    SessionState& session_;
    const bool taken_;
  };

  // An attempt that failed.
  struct Failure {
    Registration* registration;
    Error error;
  };

  // An attempt to register anew that failed: there is no other one for as long as it took.
  struct OutOfReach {
    Error why;
    Nanos until;
  };

  explicit SessionState(PoolState& pool) : pool_(pool) {}

  bool Take() {
    if (forked()) [[unlikely]]
      return false;
    Holder found = Holder::kFree;
    return holder_.compare_exchange_strong(found, Holder::kOwner, std::memory_order_acquire,
                                           std::memory_order_relaxed) ||
           TakeSlowly();
  }
  bool TakeSlowly();
  bool TakeForKeeper();
  // Whether an operation has begun since the last call.
  bool NoteUse();
  void GiveBack() { holder_.store(Holder::kFree, std::memory_order_release); }
  // Why the owner cannot have the session.
  Error NotNow() const;
  static Error NotRunning();
  template <class Request>
  static bool Fits(const Request& request);
  static Error CutOff();
  static Error TooLarge(size_t key_bytes, size_t value_bytes);
  // Whether the registration is of no use after this error.
  static bool Breaks(const Registration& registration, const Error& error);
  // A node that was out of reach may have come back: another registration can reach it.
  void RenewIfRecovered();

  // The table, if an operation on it can begin at once; nearly always.
  OpenedTable* Ready(const TableState& table) {
    if (sync_requested_.load(std::memory_order_relaxed) || current_->broken() || !current_->pool().online() ||
        current_->pool().MaintenanceDueByCount() || table.pool.get() != &pool_) {
      return nullptr;
    }
    OpenedTable* const opened = current_->Find(table);
    return opened != nullptr && opened->valid() ? opened : nullptr;
  }
  // Does what is due before an operation on the table can begin.
  Task<OpenedTable*> Prepare(const TableState& table);
  Task<OpenedTable*> PrepareOn(Registration& registration, const TableState& table);
  // The retry loop of every operation: prepares, attempts, recovers, attempts once more. `failed` is a first
  // attempt that was made already.
  template <class Request>
  Task<typename Request::Answer> Attempts(const TableState& table, Request request, Caller caller,
                                          std::optional<Failure> failed);
  // After an attempt that failed: whether the operation should be tried again. `failures` counts this one
  // too. An error is that of the search for room, which is the outcome then.
  Task<bool> Recover(Registration& registration, Error error, int failures, RoomEffort& effort);
  // One round of the search, which begins with the first; an evacuation, if nothing else makes room.
  Task<Done> MakeRoom(Registration& registration, RoomEffort& effort);
  // An operation is refused after this.
  void NoteFull(Registration& registration, const RoomEffort& effort);
  // Empties sparse chunks (index/evacuation.h). False: there are none that would help.
  Task<bool> Evacuate(Registration& registration, bool all_tables);
  Task<bool> UnlinkHeld(Registration& registration);
  Task<Done> Sync(Registration& registration);
  // Registers anew, and retires the current registration, which DropRetired ends.
  Status Reconnect();
  Status Register();
  Result<std::unique_ptr<Registration>> Join(fabric::Client& client);
  // Lets some time pass, and nudges other sessions, which this one may wait for.
  void WaitForOthers();
  // The same, but kContended if `give_up()` returns true then.
  template <class GiveUp>
  Status WaitForOthersUnless(GiveUp give_up);

  // Runs a task in a call of the owner. The task may register anew on the way.
  template <class T>
  Result<T> RunHere(Task<T> task);
  // Gives all memory back, and deregisters; takes a lease at most.
  Status Leave();
  void AwaitGrace(Nanos deadline);
  void FinishBackgroundSync();
  // Ends the retired registrations that no operation uses. No client of the session may be in its Poll: it
  // would be destroyed inside of it.
  void DropRetired();

  PoolState& pool_;
  const ForkGuard guard_;
  std::atomic<Holder> holder_{Holder::kFree};
  std::atomic<bool> sync_requested_{false};
  std::atomic<bool> wanted_{false};  // by the owner, while the keeper has it

  // Used by the holder only.
  std::unique_ptr<Registration> current_;
  std::vector<std::unique_ptr<Registration>> retired_;  // broken, perhaps with operations of tasks in flight
  bool running_ = false;                                // between BeginRunning and EndRunning
  size_t concurrency_ = 1;
  std::optional<BackgroundSync> background_sync_;
  uint64_t operations_seen_ = 0;  // pins of the current registration, as of the keeper's last look
  Nanos used_at_{0};              // when the keeper last saw that there were more
  bool disowned_ = false;         // since then
  std::optional<OutOfReach> out_of_reach_;
  // When an operation was refused last, after other clients had their time to answer; none if one has found
  // room since.
  std::optional<Nanos> full_at_;
  std::vector<Task<Done>> workers_;
  std::vector<size_t> open_items_;
  fabric::Counters before_;  // of registrations that are gone
  uint64_t polls_ = 0;
  int idle_nudges_ = 0;      // in a row, while an engine waited for grace
  size_t most_workers_ = 1;  // the same for all clients of a fabric, so set once
};

// ---- templates -------------------------------------------------------------------------------------------

template <class T>
Result<T> SessionState::RunHere(Task<T> task) {
  const bool ended = RunTasks(std::span(&task, 1), [this] { return Poll(); });
  if (!ended) return fabric::NothingInFlight();
  DropRetired();
  return task.TakeResult();
}

template <class T>
Result<T> SessionState::RunLong(Task<T> task) {
  // Two at a time: the task, and the sync beside it.
  if (Status begun = BeginRunning(2); !begun.ok()) return begun.error();
  const bool ended = RunTasks(std::span(&task, 1), [this] { return Poll(); });
  EndRunning();
  if (!ended) return Stuck();
  return task.TakeResult();
}

template <class GiveUp>
Status SessionState::WaitForOthersUnless(GiveUp give_up) {
  WaitForOthers();
  if (give_up()) return Error(ErrorCode::kContended, "gave up waiting for other clients to sync");
  return OkStatus();
}

template <class Request>
bool SessionState::Fits(const Request& request) {
  return request.key.size() <= kMaxKeyBytes && request.value_bytes() <= kMaxValueBytes;
}

template <class Request>
Result<typename Request::Answer> SessionState::Perform(const TableState& table, Request request) {
  const Turn turn(*this);
  if (!turn.taken()) [[unlikely]]
    return NotNow();
  // The first attempt needs no frame of its own: it succeeds, nearly always.
  std::optional<Failure> failed;
  OpenedTable* const opened = Fits(request) ? Ready(table) : nullptr;
  if (opened != nullptr) [[likely]] {
    fabric::Op op(current_->client(), Request::kKind);
    auto result = fabric::Run(op.client(), request.Start(op, opened->index()));
    if (result.ok()) [[likely]]
      return AnswerOf(std::move(*result));
    failed.emplace(Failure{current_.get(), result.error()});
  }
  return RunHere(Attempts(table, request, Caller::kOwner, std::move(failed)));
}

template <class Request>
Task<typename Request::Answer> SessionState::Attempts(const TableState& table, Request request, Caller caller,
                                                      std::optional<Failure> failed) {
  if (caller == Caller::kTask && !running_) co_return forked() ? ForkGuard::Refusal() : NotRunning();
  if (!Fits(request)) co_return TooLarge(request.key.size(), request.value_bytes());
  RoomEffort effort;
  int failures = 0;  // but for lack of room
  while (true) {
    if (forked()) co_return ForkGuard::Refusal();  // a task of the session has forked
    if (failed.has_value()) {
      if (failed->error.code() != ErrorCode::kOutOfMemory) ++failures;
      const bool again = co_await Recover(*failed->registration, failed->error, failures, effort);
      if (!again) co_return failed->error;
    }
    OpenedTable* opened = Ready(table);
    if (opened == nullptr) opened = co_await Prepare(table);
    Registration& registration = *current_;
    fabric::Op op(registration.client(), Request::kKind);
    auto result = co_await request.Start(op, opened->index()).Outcome();
    if (result.ok()) {
      if (effort.search.has_value()) full_at_.reset();  // it was not full after all
      co_return AnswerOf(std::move(*result));
    }
    failed.emplace(Failure{&registration, result.error()});
  }
}

template <class T, class MakeTask, class GiveUp>
Result<T> SessionState::Administer(MakeTask make_task, GiveUp give_up) {
  const Turn turn(*this);
  if (!turn.taken()) return NotNow();
  for (int attempt = 0;; ++attempt) {
    RenewIfRecovered();
    if (current_->broken()) {
      if (Status joined = Reconnect(); !joined.ok()) return joined.error();
      DropRetired();
    }
    Registration& registration = *current_;
    fabric::Op op(registration.client(), fabric::OpKind::kMaintenance);
    Result<T> result = fabric::Run(registration.client(), make_task(op, registration),
                                   [&] { return WaitForOthersUnless(give_up); });
    if (result.ok()) {
      op.End(fabric::OpKind::kMaintenance, fabric::OpOutcome::kDone);
      return result;
    }
    if (!Breaks(registration, result.error())) return result;
    registration.Break();
    if (result.error().code() != ErrorCode::kFenced || attempt > 0) return result;
  }
}

}  // namespace farside::store
