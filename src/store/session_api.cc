// farside::Session and farside::AsyncSession: the public face of SessionState.
#include "farside/session.h"

#include <utility>

#include "store/handles.h"
#include "store/pool_state.h"
#include "store/requests.h"
#include "store/session_state.h"

namespace farside {

using store::CompareAndSetRequest;
using store::DeleteRequest;
using store::GetRequest;
using store::IncrementRequest;
using store::InsertRequest;
using store::NextRequest;
using store::PutRequest;
using store::StatsRequest;
using store::UpdateRequest;

Session::Session(std::shared_ptr<store::PoolState> pool, std::unique_ptr<store::SessionState> state)
    : pool_(std::move(pool)), state_(std::move(state)) {}
Session::Session(Session&& other) noexcept = default;
Session::~Session() { End(); }

Session& Session::operator=(Session&& other) noexcept {
  if (this != &other) {
    End();  // leaves the pool that is still there
    state_ = std::move(other.state_);
    pool_ = std::move(other.pool_);
  }
  return *this;
}

void Session::End() noexcept {
  if (state_ != nullptr) store::EndUnlessForked()(state_.release());
}

Status Session::Close() { return state_ != nullptr ? state_->Close() : store::MovedFrom("session"); }
Traffic Session::traffic() const { return state_ != nullptr ? state_->traffic() : Traffic{}; }

// ---- one key -----------------------------------------------------------------------------------------

Result<bool> Session::Get(const Table& table, std::string_view key, std::string& value) {
  return store::Perform(state_.get(), table, GetRequest{key, &value});
}

Result<std::optional<std::string>> Session::Get(const Table& table, std::string_view key) {
  std::string value;
  const Result<bool> found = Get(table, key, value);
  if (!found.ok()) return found.error();
  std::optional<std::string> answer;
  if (*found) answer.emplace(std::move(value));
  return answer;
}

Status Session::Put(const Table& table, std::string_view key, std::string_view value) {
  return store::Perform(state_.get(), table, PutRequest{key, value});
}

Result<bool> Session::Insert(const Table& table, std::string_view key, std::string_view value) {
  return store::Perform(state_.get(), table, InsertRequest{key, value});
}

Result<bool> Session::Update(const Table& table, std::string_view key, std::string_view value) {
  return store::Perform(state_.get(), table, UpdateRequest{key, value});
}

Result<bool> Session::Delete(const Table& table, std::string_view key) {
  return store::Perform(state_.get(), table, DeleteRequest{key});
}

Result<bool> Session::CompareAndSet(const Table& table, std::string_view key, std::string_view expected,
                                    std::string_view desired) {
  return store::Perform(state_.get(), table, CompareAndSetRequest{key, expected, desired});
}

Result<uint64_t> Session::Increment(const Table& table, std::string_view key, uint64_t delta) {
  return store::Perform(state_.get(), table, IncrementRequest{key, delta});
}

// ---- all keys ----------------------------------------------------------------------------------------

Result<bool> Session::Next(const Table& table, Cursor& cursor, std::vector<Record>& page) {
  return store::Perform(state_.get(), table, NextRequest{.cursor = &cursor, .page = &page});
}

Result<TableStats> Session::Stats(const Table& table) {
  if (Status good = store::CheckHandles(state_.get(), table); !good.ok()) return good.error();
  return state_->RunLong(state_->PerformTask(table.state(), StatsRequest{}));
}

// ---- coroutines --------------------------------------------------------------------------------------

AsyncSession Session::Async() { return AsyncSession(state_.get()); }

Session::Running::Running(Session& session, size_t tasks)
    : state_(session.state_.get()),
      status_(state_ != nullptr ? state_->BeginRunning(tasks) : store::MovedFrom("session")) {}
Session::Running::~Running() {
  if (status_.ok()) state_->EndRunning();
}
bool Session::Running::Poll() { return state_->Poll(); }

Error Session::Running::Stuck() const { return state_->Stuck(); }

Error Session::MovedFromTask() { return store::MovedFrom("task"); }

Task<bool> AsyncSession::Get(const Table& table, std::string_view key, std::string& value) const {
  return store::PerformTask(state_, table, GetRequest{key, &value});
}

Task<Done> AsyncSession::Put(const Table& table, std::string_view key, std::string_view value) const {
  return store::PerformTask(state_, table, PutRequest{key, value});
}

Task<bool> AsyncSession::Insert(const Table& table, std::string_view key, std::string_view value) const {
  return store::PerformTask(state_, table, InsertRequest{key, value});
}

Task<bool> AsyncSession::Update(const Table& table, std::string_view key, std::string_view value) const {
  return store::PerformTask(state_, table, UpdateRequest{key, value});
}

Task<bool> AsyncSession::Delete(const Table& table, std::string_view key) const {
  return store::PerformTask(state_, table, DeleteRequest{key});
}

Task<bool> AsyncSession::CompareAndSet(const Table& table, std::string_view key, std::string_view expected,
                                       std::string_view desired) const {
  return store::PerformTask(state_, table, CompareAndSetRequest{key, expected, desired});
}

Task<uint64_t> AsyncSession::Increment(const Table& table, std::string_view key, uint64_t delta) const {
  return store::PerformTask(state_, table, IncrementRequest{key, delta});
}

Task<bool> AsyncSession::Next(const Table& table, Cursor& cursor, std::vector<Record>& page) const {
  return store::PerformTask(state_, table, NextRequest{.cursor = &cursor, .page = &page});
}

}  // namespace farside
