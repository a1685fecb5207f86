// farside::Session and farside::AsyncSession: the public face of SessionState.
#include "farside/session.h"

#include <utility>

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
Session::~Session() = default;

Session& Session::operator=(Session&& other) noexcept {
  if (this != &other) {
    state_ = std::move(other.state_);  // leaves the pool that is still there
    pool_ = std::move(other.pool_);
  }
  return *this;
}

Status Session::Close() { return state_->Close(); }
Traffic Session::traffic() const { return state_->traffic(); }

// ---- one key -----------------------------------------------------------------------------------------

Result<bool> Session::Get(const Table& table, std::string_view key, std::string& value) {
  return state_->Perform(table.state(), GetRequest{key, &value});
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
  return state_->Perform(table.state(), PutRequest{key, value});
}

Result<bool> Session::Insert(const Table& table, std::string_view key, std::string_view value) {
  return state_->Perform(table.state(), InsertRequest{key, value});
}

Result<bool> Session::Update(const Table& table, std::string_view key, std::string_view value) {
  return state_->Perform(table.state(), UpdateRequest{key, value});
}

Result<bool> Session::Delete(const Table& table, std::string_view key) {
  return state_->Perform(table.state(), DeleteRequest{key});
}

Result<bool> Session::CompareAndSet(const Table& table, std::string_view key, std::string_view expected,
                                    std::string_view desired) {
  return state_->Perform(table.state(), CompareAndSetRequest{key, expected, desired});
}

Result<uint64_t> Session::Increment(const Table& table, std::string_view key, uint64_t delta) {
  return state_->Perform(table.state(), IncrementRequest{key, delta});
}

// ---- all keys ----------------------------------------------------------------------------------------

Result<bool> Session::Next(const Table& table, Cursor& cursor, std::vector<Record>& page) {
  return state_->Perform(table.state(), NextRequest{.cursor = &cursor, .page = &page});
}

Result<TableStats> Session::Stats(const Table& table) {
  return state_->RunLong(state_->PerformTask(table.state(), StatsRequest{}));
}

// ---- coroutines --------------------------------------------------------------------------------------

AsyncSession Session::Async() { return AsyncSession(*state_); }

Session::Running::Running(Session& session, size_t tasks)
    : state_(session.state_.get()), status_(state_->BeginRunning(tasks)) {}
Session::Running::~Running() {
  if (status_.ok()) state_->EndRunning();
}
bool Session::Running::Poll() { return state_->Poll(); }

Error Session::Stuck() { return store::SessionState::Stuck(); }

Task<bool> AsyncSession::Get(const Table& table, std::string_view key, std::string& value) const {
  return state_->PerformTask(table.state(), GetRequest{key, &value});
}

Task<Done> AsyncSession::Put(const Table& table, std::string_view key, std::string_view value) const {
  return state_->PerformTask(table.state(), PutRequest{key, value});
}

Task<bool> AsyncSession::Insert(const Table& table, std::string_view key, std::string_view value) const {
  return state_->PerformTask(table.state(), InsertRequest{key, value});
}

Task<bool> AsyncSession::Update(const Table& table, std::string_view key, std::string_view value) const {
  return state_->PerformTask(table.state(), UpdateRequest{key, value});
}

Task<bool> AsyncSession::Delete(const Table& table, std::string_view key) const {
  return state_->PerformTask(table.state(), DeleteRequest{key});
}

Task<bool> AsyncSession::CompareAndSet(const Table& table, std::string_view key, std::string_view expected,
                                       std::string_view desired) const {
  return state_->PerformTask(table.state(), CompareAndSetRequest{key, expected, desired});
}

Task<uint64_t> AsyncSession::Increment(const Table& table, std::string_view key, uint64_t delta) const {
  return state_->PerformTask(table.state(), IncrementRequest{key, delta});
}

Task<bool> AsyncSession::Next(const Table& table, Cursor& cursor, std::vector<Record>& page) const {
  return state_->PerformTask(table.state(), NextRequest{.cursor = &cursor, .page = &page});
}

}  // namespace farside
