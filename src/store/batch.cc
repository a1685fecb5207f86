// MultiGet, MultiPut, MultiDelete: a few workers take the items one after the other, so that as many trips as there are
// workers overlap. A worker is a coroutine whose frame is used for many items, and frames are recycled: nothing is
// allocated for an item.
#include <algorithm>
#include <span>
#include <utility>

#include "farside/session.h"
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
void SetOutcome(PutItem& item, Result<index::PutOutcome> outcome) {
  item.status = OkStatus();
  if (!outcome.ok()) item.status = outcome.error();
}
void SetOutcome(DeleteItem& item, Result<bool> outcome) { item.deleted = std::move(outcome); }

const Error* ErrorOf(const GetItem& item) { return item.found.ok() ? nullptr : &item.found.error(); }
const Error* ErrorOf(const PutItem& item) { return item.status.ok() ? nullptr : &item.status.error(); }
const Error* ErrorOf(const DeleteItem& item) { return item.deleted.ok() ? nullptr : &item.deleted.error(); }

template <class Item>
struct Batch {
  SessionState& session;
  const TableState& table;
  std::span<Item> items;
  size_t next = 0;  // the first that no worker has taken
};

// How many items before its turn comes an item is announced to the index.
constexpr size_t kAhead = 8;

template <class Item>
Task<Done> Work(Batch<Item>& batch) {
  while (batch.next < batch.items.size()) {
    Item& item = batch.items[batch.next++];
    if (batch.next + kAhead < batch.items.size())
      batch.session.Anticipate(batch.table, batch.items[batch.next + kAhead].key);
    const auto request = RequestOf(item);
    SetOutcome(item, co_await batch.session.PerformTask(batch.table, request).Outcome());
  }
  co_return Done{};
}

template <class Item>
Status FirstError(std::span<const Item> items) {
  for (const Item& item : items) {
    if (const Error* error = ErrorOf(item)) return *error;
  }
  return OkStatus();
}

template <class Item>
Status Perform(Session& session, SessionState& state, const Table& table, std::span<Item> items) {
  Batch<Item> batch{.session = state, .table = table.state(), .items = items};
  std::vector<Task<Done>>& workers = state.workers();
  workers.clear();
  for (size_t i = 0; i < std::min(items.size(), state.most_workers()); ++i) workers.push_back(Work(batch));
  const Status ran = session.RunAll(std::span(workers));
  workers.clear();
  if (!ran.ok()) return ran;
  return FirstError(std::span<const Item>(items));
}

}  // namespace

Status Session::MultiGet(const Table& table, std::span<GetItem> items) {
  return Perform(*this, *state_, table, items);
}
Status Session::MultiPut(const Table& table, std::span<PutItem> items) {
  return Perform(*this, *state_, table, items);
}
Status Session::MultiDelete(const Table& table, std::span<DeleteItem> items) {
  return Perform(*this, *state_, table, items);
}

}  // namespace farside
