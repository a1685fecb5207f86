// What is behind a farside::Session.
//
// Who may touch it. `holder_` says whose turn it is: the owner's, for the time of a call, or the keeper's, who gives signs of
// life on behalf of sessions that nobody uses (pool_state.h). Taking it and giving it back are the only atomic operations
// of a call: no other thread wants it, nearly always.
//
//   free ---- owner calls ----> owner ---- the call returns ----> free
//   free ---- keeper comes ---> keeper --- a few trips later ---> free
//   owner --- Close ----------> closed
//
// A keeper that finds the owner at it leaves a note (`wanted_`), and the next operation gives the sign of life.
//
// What happens when the client was cut off: an operation that changed nothing says kFenced. The session then registers anew,
// and the operation is tried once more. The old registration stays until no task is in the middle of an operation of it.
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

#include "fabric/op.h"
#include "fabric/run.h"
#include "farside/result.h"
#include "farside/session.h"
#include "farside/task.h"
#include "index/index.h"
#include "pool/memory/block.h"
#include "store/registration.h"
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

  // ---- the owner's calls

  // One operation (requests.h).
  template <class Request>
  Result<typename Request::Answer> Perform(const TableState& table, Request request);
  // The same, for a task that runs in this session (BeginRunning).
  template <class Request>
  Task<typename Request::Answer> PerformTask(const TableState& table, Request request);
  // Whether SearchTogether is worth while.
  bool SearchesTogether(const TableState& table) {
    OpenedTable* const opened = current_->Find(table);
    return opened != nullptr && opened->index().searches_together();
  }
  // Searches some keys by trips that they share (Index::SearchTogether), for a task that runs in this session. What it leaves
  // open is to be performed one by one, which also does whatever is in the way.
  Task<Done> SearchTogether(const TableState& table, std::span<index::Search> searches);
  // An operation on the key comes soon. By a task of the session.
  void Anticipate(const TableState& table, std::string_view key) {
    OpenedTable* const opened = current_->Find(table);
    if (opened != nullptr) opened->index().Anticipate(key);
  }

  // From here to EndRunning, tasks run in this session, so many at a time.
  Status BeginRunning(size_t tasks);
  void EndRunning();
  bool Poll();

  // What is not an operation on a table: `make_task(op, session)`, which may have to wait for others, until
  // `give_up()` says that it should not.
  template <class T, class MakeTask, class GiveUp>
  Result<T> Administer(MakeTask make_task, GiveUp give_up);

  Status Close();
  Traffic traffic();

  // Memory for the tasks of batches, and for the items that are left open.
  std::vector<Task<Done>>& workers() { return workers_; }
  std::vector<size_t>& open_items() { return open_items_; }

  // ---- anybody's calls

  // A sign of life, if nobody uses the session now. After true, ContinueKeeping follows until it returns true, by the
  // same thread. False: somebody does; AskForSign lets that one give the sign soon.
  bool BeginKeeping();
  bool ContinueKeeping();
  void AskForSign() { wanted_.store(true, std::memory_order_relaxed); }
  // Tasks at once that an operation on many keys is worth.
  size_t most_workers() const { return most_workers_; }

  // ---- for tests, between calls
  Registration& registration() { return *current_; }

 private:
  enum class Holder : uint8_t { kFree, kOwner, kKeeper, kClosed };
  // The owner's turn, for the time of a call.
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

  // A task that runs beside those of the owner.
  struct BackgroundSync {
    explicit BackgroundSync(Registration& of)
        : registration(of), op(of.client(), fabric::OpKind::kMaintenance), task(of.pool().KeepUp(op)) {}
    Registration& registration;
    fabric::Op op;
    Task<Done> task;
  };

  // A sign of life on behalf of a session. The tick is there so that nobody sleeps for long in a Poll of this session, as
  // others are visited at the same time.
  struct KeeperSync {
    explicit KeeperSync(Registration& of) : background(of) {}
    BackgroundSync background;
    std::optional<Task<Done>> tick;  // if it takes more than a moment
  };

  explicit SessionState(PoolState& pool) : pool_(pool) {}

  bool Take() {
    Holder found = Holder::kFree;
    return holder_.compare_exchange_strong(found, Holder::kOwner, std::memory_order_acquire,
                                           std::memory_order_relaxed) ||
           TakeSlowly();
  }
  bool TakeSlowly();
  void GiveBack() { holder_.store(Holder::kFree, std::memory_order_release); }
  // Why it is not the owner's turn.
  Error NotNow() const;
  static Error NotRunning();
  template <class Request>
  static bool Fits(const Request& request);
  static Error TooLarge(size_t key_bytes, size_t value_bytes);
  // Whether the client can do nothing any more after this error.
  static bool Breaks(const Registration& registration, const Error& error);
  // A node that was out of reach has come back: another registration can have it.
  void RenewIfRecovered();

  // The table, if an operation on it can begin at once; nearly always.
  OpenedTable* Ready(const TableState& table) {
    if (wanted_.load(std::memory_order_relaxed) || current_->broken() ||
        current_->pool().MaintenanceDueByCount() || table.pool.get() != &pool_) {
      return nullptr;
    }
    OpenedTable* const opened = current_->Find(table);
    return opened != nullptr && opened->valid() ? opened : nullptr;
  }
  // Does what is in the way of that.
  Task<OpenedTable*> Prepare(const TableState& table);
  Task<OpenedTable*> PrepareOn(Registration& registration, const TableState& table);
  // After an operation that failed in its `attempt`: whether it should be tried again.
  Task<bool> Recover(Registration& registration, Error error, int attempt);
  Task<Done> MakeRoom(Registration& registration);
  Task<Done> KeepUp(Registration& registration);
  Status Reconnect();
  // Lets some time pass, and moves others on who may be waited for.
  void WaitForOthers();

  // Runs a task of this session that may register anew on the way.
  template <class T>
  Result<T> RunHere(Task<T> task);
  // Gives everything back, and deregisters; a lease at most.
  Status Leave();
  void AwaitGrace(Nanos deadline);
  void FinishBackgroundSync();
  void DropRetired();

  PoolState& pool_;
  std::atomic<Holder> holder_{Holder::kFree};
  std::atomic<bool> wanted_{false};  // the keeper came in vain

  // By the holder only.
  std::unique_ptr<Registration> current_;
  std::vector<std::unique_ptr<Registration>> retired_;  // broken, and perhaps with operations of tasks
  bool running_ = false;                                // between BeginRunning and EndRunning
  size_t concurrency_ = 1;
  std::optional<BackgroundSync> background_sync_;
  std::optional<KeeperSync> keeper_sync_;
  std::vector<Task<Done>> workers_;
  std::vector<size_t> open_items_;
  Traffic before_;  // of registrations that are gone
  uint64_t polls_ = 0;
  int idle_nudges_ = 0;      // of those who are idle, since it last waited for nobody
  size_t most_workers_ = 1;  // the same for all clients of a fabric, so set once
};

// ---- templates ---------------------------------------------------------------------------------------

template <class T>
Result<T> SessionState::RunHere(Task<T> task) {
  task.Start();
  while (!task.done()) {
    if (!Poll())
      return Error(ErrorCode::kUnavailable, "the operation waits for something that is not in flight");
  }
  return task.TakeResult();
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
  if (!Fits(request)) [[unlikely]]
    return TooLarge(request.key.size(), request.value_bytes());
  for (int attempt = 0;; ++attempt) {
    OpenedTable* opened = Ready(table);
    if (opened == nullptr) [[unlikely]] {
      const Result<OpenedTable*> prepared = RunHere(Prepare(table));
      if (!prepared.ok()) return prepared.error();
      opened = *prepared;
    }
    Registration& registration = *current_;
    fabric::Op op(registration.client(), Request::kKind);
    Result<typename Request::Answer> result =
        fabric::Run(registration.client(), request.Start(op, opened->index()));
    if (result.ok()) [[likely]]
      return result;
    const Result<bool> again = RunHere(Recover(registration, result.error(), attempt));
    if (!again.ok() || !*again) return result;
  }
}

template <class Request>
Task<typename Request::Answer> SessionState::PerformTask(const TableState& table, Request request) {
  if (!running_) co_return NotRunning();
  if (!Fits(request)) co_return TooLarge(request.key.size(), request.value_bytes());
  for (int attempt = 0;; ++attempt) {
    OpenedTable* opened = Ready(table);
    if (opened == nullptr) opened = co_await Prepare(table);
    Registration& registration = *current_;
    fabric::Op op(registration.client(), Request::kKind);
    Result<typename Request::Answer> result = co_await request.Start(op, opened->index()).Outcome();
    if (result.ok()) co_return std::move(result);
    const Result<bool> again = co_await Recover(registration, result.error(), attempt).Outcome();
    if (!again.ok() || !*again) co_return std::move(result);
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
    }
    Registration& registration = *current_;
    fabric::Op op(registration.client(), fabric::OpKind::kMaintenance);
    Result<T> result = RunBlocking(
        registration.client(), make_task(op, registration.session()), [this] { WaitForOthers(); }, give_up);
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
