// Scan, First, Last, and the cursor of a range.
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"
#include "farside/session.h"
#include "store/engines.h"
#include "store/handles.h"
#include "store/requests.h"
#include "store/session_state.h"

namespace farside {
namespace {

using store::LastRequest;
using store::ScanRequest;

// A scan of more records than this may take longer than a session should go without a sync.
constexpr size_t kMostAtOnce = 1024;

Status CheckOrdered(const Table& table) {
  if (table.ordered()) return OkStatus();
  return Error(
      ErrorCode::kInvalidArgument,
      fmt::format("table '{}' has the engine {}, which keeps keys in no order; scans of a range need one "
                  "that does: {}",
                  Escape(table.name()), table.engine(), store::OrderedEngineNames()));
}

Status CheckScan(const Table& table, size_t limit) {
  if (limit == 0)
    return Error(ErrorCode::kInvalidArgument, "a scan is of at least one record: the limit is 0");
  return CheckOrdered(table);
}

// Moves the cursor behind the page. No key lies between the last one and the same with a zero byte appended.
void Advance(RangeCursor& cursor, bool more, const std::vector<Record>& page) {
  cursor.at_end = !more;
  if (page.empty()) return;
  cursor.rest.from = page.back().key;
  cursor.rest.from.push_back('\0');
}

// Not coroutines of AsyncSession: that handle may end before its task begins.
Task<bool> ScanTask(store::SessionState& state, const Table& table, const KeyRange& range, size_t limit,
                    std::vector<Record>& page) {
  const Status good = CheckScan(table, limit);
  if (!good.ok()) co_return good.error();
  const ScanRequest request{.range = &range, .limit = limit, .page = &page};
  co_return co_await state.PerformTask(table.state(), request);
}

Task<bool> NextTask(store::SessionState& state, const Table& table, RangeCursor& cursor,
                    std::vector<Record>& page) {
  page.clear();
  if (cursor.at_end) co_return false;
  const bool more = co_await ScanTask(state, table, cursor.rest, cursor.page_records, page);
  Advance(cursor, more, page);
  co_return !page.empty();
}

Task<bool> LastTask(store::SessionState& state, const Table& table, const KeyRange& range, Record& record) {
  const Status good = CheckOrdered(table);
  if (!good.ok()) co_return good.error();
  const LastRequest request{.range = &range, .record = &record};
  co_return co_await state.PerformTask(table.state(), request);
}

}  // namespace

Result<bool> Session::Scan(const Table& table, const KeyRange& range, size_t limit,
                           std::vector<Record>& page) {
  if (Status good = store::CheckHandles(state_.get(), table); !good.ok()) return good.error();
  if (limit > kMostAtOnce) return state_->RunLong(ScanTask(*state_, table, range, limit, page));
  if (Status good = CheckScan(table, limit); !good.ok()) return good.error();
  return state_->Perform(table.state(), ScanRequest{.range = &range, .limit = limit, .page = &page});
}

Result<std::vector<Record>> Session::Scan(const Table& table, const KeyRange& range, size_t limit) {
  std::vector<Record> page;
  const Result<bool> scanned = Scan(table, range, limit, page);
  if (!scanned.ok()) return scanned.error();
  return page;
}

Result<bool> Session::Next(const Table& table, RangeCursor& cursor, std::vector<Record>& page) {
  if (Status good = store::CheckHandles(state_.get(), table); !good.ok()) return good.error();
  page.clear();
  if (cursor.at_end) return false;
  const Result<bool> more = Scan(table, cursor.rest, cursor.page_records, page);
  if (!more.ok()) return more;
  Advance(cursor, *more, page);
  return !page.empty();
}

Result<std::optional<Record>> Session::First(const Table& table, const KeyRange& range) {
  std::vector<Record> page;
  const Result<bool> scanned = Scan(table, range, 1, page);
  if (!scanned.ok()) return scanned.error();
  std::optional<Record> first;
  if (!page.empty()) first = std::move(page.front());
  return first;
}

Result<std::optional<Record>> Session::Last(const Table& table, const KeyRange& range) {
  if (Status good = store::CheckHandles(state_.get(), table); !good.ok()) return good.error();
  if (Status good = CheckOrdered(table); !good.ok()) return good.error();
  Record record;
  const Result<bool> found = state_->Perform(table.state(), LastRequest{.range = &range, .record = &record});
  if (!found.ok()) return found.error();
  std::optional<Record> last;
  if (*found) last = std::move(record);
  return last;
}

// ---- coroutines --------------------------------------------------------------------------------------

Task<bool> AsyncSession::Scan(const Table& table, const KeyRange& range, size_t limit,
                              std::vector<Record>& page) const {
  if (!store::HaveStates(state_, table)) return store::Refuse<bool>(store::WithoutState(state_));
  return ScanTask(*state_, table, range, limit, page);
}

Task<bool> AsyncSession::Next(const Table& table, RangeCursor& cursor, std::vector<Record>& page) const {
  if (!store::HaveStates(state_, table)) return store::Refuse<bool>(store::WithoutState(state_));
  return NextTask(*state_, table, cursor, page);
}

Task<bool> AsyncSession::Last(const Table& table, const KeyRange& range, Record& record) const {
  if (!store::HaveStates(state_, table)) return store::Refuse<bool>(store::WithoutState(state_));
  return LastTask(*state_, table, range, record);
}

}  // namespace farside
