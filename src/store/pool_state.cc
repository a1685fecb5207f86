#include "store/pool_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>

#include "store/engines.h"
#include "store/handles.h"

namespace farside::store {

using fabric::Op;

namespace {

// As often as a client has to sync: several rounds may find a session in use. More often while epochs move:
// then some client, perhaps of another process, waits for the idle sessions of this one.
constexpr int kRoundsPerLease = 8;
constexpr int kRoundsWhileMoving = 32;
// How soon a session that is not used any more goes offline.
constexpr Nanos kLookInterval = std::chrono::milliseconds(20);
// How often sparse chunks are emptied for a new table.
constexpr int kMostEvacuationsForTable = 64;
constexpr auto kMoment = std::chrono::microseconds(200);
// A nudge takes a trip for each session. Sessions that wait for its effect, which may be many, rest for so
// many times as long as it took.
constexpr int kRest = 4;

// What stays known of a table when it is not open any more. An open table belongs to the pool's own session,
// and must be closed before the keeper can have that session.
struct Known {
  pool::TableInfo info;
  bool created = false;
};

Task<Known> CreateOrLookUp(Op& op, Registration& self, std::string name, std::string engine,
                           index::OptionMap options) {
  const index::OpenTable open =
      co_await self.tables().CreateOrOpen(op, std::move(name), std::move(engine), std::move(options));
  co_return Known{open.info, open.created};
}

Task<Known> LookUp(Op& op, Registration& self, std::string name) {
  const index::OpenTable open = co_await self.tables().Open(op, std::move(name));
  co_return Known{open.info, open.created};
}

}  // namespace

TableState::TableState(std::shared_ptr<PoolState> of, uint64_t number, uint32_t place, pool::TableInfo table,
                       index::OptionMap with)
    : pool(std::move(of)),
      id(number),
      slot(place),
      info(std::move(table)),
      ordered(IsOrdered(info.engine, with)),
      options(std::move(with)) {}

TableState::~TableState() { pool->ReturnSlot(slot); }

bool TableState::forked() const { return pool->forked(); }

PoolState::PoolState(std::unique_ptr<pool::OpenedPool> opened, const pool::ClientOptions& client_options)
    : client_options_(client_options), opened_(std::move(opened)) {}

Result<std::shared_ptr<PoolState>> PoolState::Open(std::string_view url, const PoolStateOptions& options) {
  pool::OpenOptions open = options.open;
  open.lease = options.client.lease.lease;
  Result<std::unique_ptr<pool::OpenedPool>> opened = pool::OpenPool(url, open);
  if (!opened.ok()) return opened.error();
  return Serve(std::move(*opened), options);
}

Result<std::shared_ptr<PoolState>> PoolState::Serve(std::unique_ptr<pool::OpenedPool> opened,
                                                    const PoolStateOptions& options) {
  if (opened->calls != nullptr) RegisterHandlers(*opened->calls);
  std::shared_ptr<PoolState> state(new PoolState(std::move(opened), options.client), EndUnlessForked());
  if (Status started = state->Start(options.keeper); !started.ok()) return started.error();
  return state;
}

Status PoolState::Start(bool keeper) {
  Result<std::unique_ptr<SessionState>> own = SessionState::Join(*this);
  if (!own.ok()) return own.error();
  own_ = std::move(*own);
  own_is_open_ = true;
  if (keeper) keeper_ = std::thread([this] { RunKeeper(); });
  return OkStatus();
}

PoolState::~PoolState() { StopKeeper(); }

Status PoolState::Close() {
  if (Status ours = CheckProcess(); !ours.ok()) return ours;
  {
    const std::scoped_lock lock(sessions_mutex_);
    const size_t open = sessions_.size() - (own_is_open_ ? 1 : 0);
    if (open > 0) {
      return Error(ErrorCode::kInvalidArgument,
                   fmt::format("{} session{} of the pool {} still open; close them first", open,
                               open == 1 ? "" : "s", open == 1 ? "is" : "are"));
    }
    own_is_open_ = false;
  }
  StopKeeper();
  const std::scoped_lock lock(own_mutex_);
  if (own_ == nullptr) return Closed();
  const std::unique_ptr<SessionState> own = std::move(own_);
  return own->Close();
}

void PoolState::Abandon() {
  StopKeeper();
  const std::scoped_lock lock(sessions_mutex_);
  for (SessionState* session : sessions_) session->Abandon();
}

Error PoolState::Closed() { return Error(ErrorCode::kInvalidArgument, "the pool is closed"); }

Status PoolState::CheckProcess() const {
  if (forked()) return ForkGuard::Refusal();
  return OkStatus();
}

// ---- sessions ----------------------------------------------------------------------------------------

Result<std::unique_ptr<SessionState>> PoolState::NewSession() {
  if (Status ours = CheckProcess(); !ours.ok()) return ours.error();
  if (closing()) return Closed();
  return SessionState::Join(*this);
}

void PoolState::Add(SessionState& session) {
  const std::scoped_lock lock(sessions_mutex_);
  sessions_.push_back(&session);
}

void PoolState::Remove(SessionState& session) {
  const std::scoped_lock lock(sessions_mutex_);
  std::erase(sessions_, &session);
}

void PoolState::Nudge(const SessionState* self, InUse in_use, Busy busy, SessionState::Visit visit) {
  std::unique_lock lock(sessions_mutex_, std::defer_lock);
  if (busy == Busy::kWait) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return;  // another thread nudges, or a session comes or goes
  }
  // All at once: to wait for one after the other at a node that hangs would take longer than a lease.
  for (SessionState* session : sessions_) {
    if (session == self) continue;
    if (session->BeginBackgroundSync(visit)) {
      syncing_.push_back(session);
    } else if (in_use == InUse::kRequest) {
      session->RequestSync();
    }
  }
  ContinueSyncs();
}

void PoolState::ContinueSyncs() {
  while (!syncing_.empty()) {
    std::erase_if(syncing_, [](SessionState* session) { return session->ContinueBackgroundSync(); });
  }
}

bool PoolState::RestIdleSessions() {
  bool online = false;
  const std::scoped_lock lock(sessions_mutex_);
  for (SessionState* session : sessions_) {
    if (session->BeginRest(online)) syncing_.push_back(session);
  }
  ContinueSyncs();
  return online;
}

// Rarely: when a session is used again after it was idle.
void PoolState::NoteOnline() {
  if (online_.exchange(true, std::memory_order_relaxed)) return;
  { const std::scoped_lock lock(keeper_mutex_); }  // the keeper has looked at online_, or is asleep
  keeper_wakes_.notify_all();
}

void PoolState::NudgeAndRest(const SessionState* self, InUse in_use) {
  using Time = std::chrono::steady_clock;
  const Time::time_point begin = Time::now();
  if (begin.time_since_epoch() < rest_until_.load(std::memory_order_relaxed)) return;
  Nudge(self, in_use, Busy::kReturn, SessionState::Visit::kNudge);
  const Time::time_point end = Time::now();
  // Not for longer than the keeper rests: the waiting session may depend on it.
  const Nanos most = client_options_.lease.lease / kRoundsPerLease;
  const Nanos rest = std::min<Nanos>(kRest * (end - begin), most);
  rest_until_.store(end.time_since_epoch() + rest, std::memory_order_relaxed);
}

void PoolState::WaitForOthers(const SessionState* self) {
  std::this_thread::sleep_for(kMoment);
  NudgeAndRest(self, InUse::kRequest);
}

// ---- the keeper ------------------------------------------------------------------------------------------

// By a thread of its own: to connect to a machine that is gone takes longer than the keeper may.
void PoolState::StartRequestedProbe() {
  if (probing_.load(std::memory_order_acquire)) return;
  if (!probe_requested_.exchange(false, std::memory_order_relaxed)) return;
  if (probe_.joinable()) probe_.join();
  probing_.store(true, std::memory_order_relaxed);
  try {
    probe_ = std::thread([this] {
      ProbeLostNodes();
      probing_.store(false, std::memory_order_release);
    });
  } catch (const std::system_error&) {  // there may be no more threads; the next round tries again
    probing_.store(false, std::memory_order_relaxed);
    RequestProbe();
  }
}

void PoolState::ProbeLostNodes() {
  const Result<std::unique_ptr<fabric::Client>> probe = fabric().Connect();
  if (!probe.ok()) return;
  for (size_t node = 0; node < fabric().region_bytes().size(); ++node) {
    if (!(*probe)->Reaches(static_cast<fabric::NodeId>(node))) return;
  }
  recoveries_.fetch_add(1, std::memory_order_relaxed);
}

bool PoolState::Keep() {
  StartRequestedProbe();
  // Only here are sessions in use sure to be asked for a sync, so it waits for other threads that nudge.
  Nudge(nullptr, InUse::kRequest, Busy::kWait, SessionState::Visit::kBeat);
  const std::unique_lock lock(own_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || own_ == nullptr) return false;
  uint64_t epochs = epochs_;
  // A failure is not reported: the next round tries again.
  [[maybe_unused]] const Status kept = own_->Administer<Done>(
      [&epochs](Op& op, Registration& self) {
        epochs = self.pool().KnownEpochs();
        return self.pool().Maintain(op);
      },
      [this] { return closing(); });
  return std::exchange(epochs_, epochs) != epochs;
}

void PoolState::RunKeeper() {
  using Time = std::chrono::steady_clock;
  const auto interval = [this](bool moving) {
    const int rounds = moving ? kRoundsWhileMoving : kRoundsPerLease;
    return std::max<Nanos>(client_options_.lease.lease / rounds, std::chrono::milliseconds(1));
  };
  const Nanos look = std::min(kLookInterval, interval(/*moving=*/false));
  Time::time_point next_round = Time::now() + interval(/*moving=*/false);
  std::unique_lock lock(keeper_mutex_);
  while (!closing()) {
    const bool looks = online_.load(std::memory_order_relaxed);
    const Time::time_point next_look = Time::now() + look;
    // One that sleeps until the next round is woken when a session comes online.
    keeper_wakes_.wait_until(lock, looks ? std::min(next_look, next_round) : next_round, [this, looks] {
      return closing() || (!looks && online_.load(std::memory_order_relaxed));
    });
    if (closing()) return;
    lock.unlock();
    if (Time::now() >= next_round) next_round = Time::now() + interval(Keep());
    if (looks) {
      // A session that comes online from here on says so.
      online_.store(false, std::memory_order_relaxed);
      if (RestIdleSessions()) online_.store(true, std::memory_order_relaxed);
    }
    lock.lock();
  }
}

void PoolState::StopKeeper() {
  {
    const std::scoped_lock lock(keeper_mutex_);
    closing_ = true;
  }
  keeper_wakes_.notify_all();
  if (keeper_.joinable()) keeper_.join();
  if (probe_.joinable()) probe_.join();
}

// ---- tables ------------------------------------------------------------------------------------------

std::shared_ptr<const TableState> PoolState::NewTable(pool::TableInfo info, index::OptionMap options) {
  const std::scoped_lock lock(slots_mutex_);
  uint32_t slot = slots_;
  if (free_slots_.empty()) {
    ++slots_;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  return std::shared_ptr<const TableState>(
      new TableState(shared_from_this(), ++last_id_, slot, std::move(info), std::move(options)),
      EndUnlessForked());
}

void PoolState::ReturnSlot(uint32_t slot) {
  const std::scoped_lock lock(slots_mutex_);
  free_slots_.push_back(slot);
}

// Waits as long as the task does, which bounds itself.
template <class T, class MakeTask>
Result<T> PoolState::Administer(MakeTask make_task) {
  if (own_ == nullptr) return Closed();
  return own_->Administer<T>(make_task, [] { return false; });
}

// The session of the pool has not opened the tables that fill it, and a table may need memory in many places,
// each of which may take an evacuation. If it is not memory that is missing but a slot of the catalog, there
// is nothing to search for.
template <class Create>
auto PoolState::WithRoom(Create create) -> decltype(create()) {
  std::optional<SessionState::RoomEffort> effort;
  bool answered = false;
  for (int evacuations = 0; true;) {
    if (own_ != nullptr) own_->registration().pool().ForgetNoMemory();
    auto created = create();
    const bool no_room = !created.ok() && created.error().code() == ErrorCode::kOutOfMemory;
    if (!no_room || own_ == nullptr || !own_->registration().pool().FoundNoMemory()) return created;
    if (effort.has_value() && effort->evacuated && evacuations < kMostEvacuationsForTable) {
      answered |= effort->exhausted();
      effort.reset();
      ++evacuations;
    }
    if (effort.has_value() && effort->exhausted()) return created;
    if (!effort.has_value()) {
      effort.emplace().all_tables = true;
      effort->answered = answered;
    }
    if (Status searched = own_->SearchForRoom(*effort); !searched.ok()) return searched.error();
  }
}

Result<PoolState::MadeTable> PoolState::CreateOrOpen(std::string_view name, std::string_view engine,
                                                     const index::OptionMap& options) {
  if (Status ours = CheckProcess(); !ours.ok()) return ours.error();
  const std::scoped_lock lock(own_mutex_);
  // Without the lock of the catalog and without a pin it makes room, and tries again.
  Result<Known> known = WithRoom([&] {
    return Administer<Known>([&](Op& op, Registration& self) {
      return CreateOrLookUp(op, self, std::string(name), std::string(engine), options);
    });
  });
  if (!known.ok()) return known.error();
  return MadeTable{.table = NewTable(std::move(known->info), options), .created = known->created};
}

Result<std::shared_ptr<const TableState>> PoolState::OpenTable(std::string_view name) {
  if (Status ours = CheckProcess(); !ours.ok()) return ours.error();
  const std::scoped_lock lock(own_mutex_);
  Result<Known> known =
      Administer<Known>([&](Op& op, Registration& self) { return LookUp(op, self, std::string(name)); });
  if (!known.ok()) return known.error();
  Result<index::OptionMap> options = index::ParseOptions(known->info.options);
  if (!options.ok()) return options.error();
  return NewTable(std::move(known->info), std::move(*options));
}

Status PoolState::DropTable(std::string_view name) {
  if (Status ours = CheckProcess(); !ours.ok()) return ours;
  const std::scoped_lock lock(own_mutex_);
  return Administer<Done>(
      [&](Op& op, Registration& self) { return self.tables().Drop(op, std::string(name)); });
}

Result<std::vector<pool::TableInfo>> PoolState::ListTables() {
  if (Status ours = CheckProcess(); !ours.ok()) return ours.error();
  const std::scoped_lock lock(own_mutex_);
  return Administer<std::vector<pool::TableInfo>>(
      [](Op& op, Registration& self) { return self.tables().List(op); });
}

}  // namespace farside::store
