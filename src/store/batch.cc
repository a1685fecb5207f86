// MultiGet, MultiPut, MultiDelete: a few workers take the items one after the other, so that the trips of all
// workers overlap. A worker is a coroutine that handles many items with one frame: nothing is allocated for
// an item.
//
// If the engine supports it (Index::SearchTogether), MultiGet searches several items at a time by trips that
// they share. Items that this leaves open are searched one by one.
#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "farside/session.h"
#include "index/index.h"
#include "store/handles.h"
#include "store/requests.h"
#include "store/session_state.h"

namespace farside {
namespace {

using store::SessionState;
using store::TableState;

store::GetRequest RequestOf(GetItem& item) { return {item.key, &item.value}; }
store::PutRequest RequestOf(PutItem& item) { return {item.key, item.value}; }
store::DeleteRequest RequestOf(DeleteItem& item) { return {item.key}; }

void SetOutcome(GetItem& item, Result<bool> outcome) { item.found = std::move(outcome); }
void SetOutcome(PutItem& item, Status outcome) { item.status = std::move(outcome); }
void SetOutcome(DeleteItem& item, Result<bool> outcome) { item.deleted = std::move(outcome); }

const Error* ErrorOf(const GetItem& item) { return item.found.ok() ? nullptr : &item.found.error(); }
const Error* ErrorOf(const PutItem& item) { return item.status.ok() ? nullptr : &item.status.error(); }
const Error* ErrorOf(const DeleteItem& item) { return item.deleted.ok() ? nullptr : &item.deleted.error(); }

// The items of a call: all of them, or those whose numbers are in `some`.
template <class Item>
struct Batch {
  SessionState& session;
  const TableState& table;
  std::span<Item> items;
  std::span<const size_t> some = {};
  size_t next = 0;  // the first that no worker has taken

  size_t size() const { return some.empty() ? items.size() : some.size(); }
  Item& at(size_t i) { return items[some.empty() ? i : some[i]]; }
};

// ---- one by one ----------------------------------------------------------------------------------------

// How many items before its turn comes an item is announced to the index.
constexpr size_t kAhead = 8;

template <class Item>
Task<Done> Work(Batch<Item>& batch) {
  while (batch.next < batch.size()) {
    Item& item = batch.at(batch.next++);
    if (batch.next + kAhead < batch.size())
      batch.session.Anticipate(batch.table, batch.at(batch.next + kAhead).key);
    const auto request = RequestOf(item);
    SetOutcome(item, co_await batch.session.PerformTask(batch.table, request).Outcome());
  }
  co_return Done{};
}

// Runs `count` tasks that `make_task` makes, all at once.
template <class MakeTask>
Status RunWorkers(Session& session, SessionState& state, size_t count, MakeTask make_task) {
  std::vector<Task<Done>>& workers = state.workers();
  workers.clear();
  for (size_t i = 0; i < count; ++i) workers.push_back(make_task());
  const Status ran = session.RunAll(std::span(workers));
  workers.clear();
  return ran;
}

template <class Item>
Status FirstError(std::span<const Item> items) {
  for (const Item& item : items) {
    if (const Error* error = ErrorOf(item)) return *error;
  }
  return OkStatus();
}

template <class Item>
Status Perform(Session& session, SessionState& state, Batch<Item> batch) {
  const size_t count = std::min(batch.size(), state.most_workers());
  const Status ran = RunWorkers(session, state, count, [&batch] { return Work(batch); });
  if (!ran.ok()) return ran;
  return FirstError(std::span<const Item>(batch.items));
}

// ---- together ------------------------------------------------------------------------------------------

// Adds the numbers of the items that stay open to `open`.
Task<Done> SearchSome(Batch<GetItem>& batch, std::vector<size_t>& open) {
  std::array<index::Search, index::kMostTogether> searches;
  std::array<size_t, index::kMostTogether> numbers;
  while (batch.next < batch.size()) {
    size_t count = 0;
    for (; count < searches.size() && batch.next < batch.size(); ++batch.next) {
      GetItem& item = batch.at(batch.next);
      if (item.key.size() > kMaxKeyBytes) {
        open.push_back(batch.next);
        continue;
      }
      numbers[count] = batch.next;
      searches[count].key = item.key;
      searches[count].value = &item.value;
      searches[count].outcome = index::Search::Outcome::kOpen;
      ++count;
    }
    const std::span<index::Search> asked = std::span(searches).first(count);
    // An error shows again when the searches that it leaves open are performed one by one.
    static_cast<void>(co_await batch.session.SearchTogether(batch.table, asked).Outcome());
    for (size_t i = 0; i < count; ++i) {
      if (asked[i].outcome == index::Search::Outcome::kOpen) {
        open.push_back(numbers[i]);
      } else {
        batch.at(numbers[i]).found = asked[i].outcome == index::Search::Outcome::kFound;
      }
    }
  }
  co_return Done{};
}

}  // namespace

Status Session::MultiGet(const Table& table, std::span<GetItem> items) {
  if (Status good = store::CheckHandles(state_.get(), table); !good.ok()) return good;
  Batch<GetItem> batch{.session = *state_, .table = table.state(), .items = items};
  if (items.size() < 2 || !state_->SearchesTogether(table.state())) return Perform(*this, *state_, batch);
  std::vector<size_t>& open = state_->open_items();
  open.clear();
  const size_t at_once = std::max<size_t>(state_->most_workers() / index::kMostTogether, 1);
  const size_t groups = (items.size() + index::kMostTogether - 1) / index::kMostTogether;
  const Status ran = RunWorkers(*this, *state_, std::min(groups, at_once),
                                [&batch, &open] { return SearchSome(batch, open); });
  if (!ran.ok()) return ran;
  if (open.empty()) return OkStatus();
  return Perform(*this, *state_,
                 Batch<GetItem>{.session = *state_, .table = table.state(), .items = items, .some = open});
}
Status Session::MultiPut(const Table& table, std::span<PutItem> items) {
  if (Status good = store::CheckHandles(state_.get(), table); !good.ok()) return good;
  return Perform(*this, *state_, Batch<PutItem>{.session = *state_, .table = table.state(), .items = items});
}
Status Session::MultiDelete(const Table& table, std::span<DeleteItem> items) {
  if (Status good = store::CheckHandles(state_.get(), table); !good.ok()) return good;
  return Perform(*this, *state_,
                 Batch<DeleteItem>{.session = *state_, .table = table.state(), .items = items});
}

}  // namespace farside
