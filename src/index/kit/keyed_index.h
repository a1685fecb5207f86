// The drivers of a search and of a change: what every engine does alike, around one attempt that is the
// engine's own.
//
//   class Table final : public KeyedIndex<Table> {
//    private:
//     friend class KeyedIndex<Table>;
//     using ChangeContext = my::ChangeContext;                       // derived from index::ChangeContext
//     using SearchContext = my::SearchContext;                       // derived from index::SearchContext
//     ChangeContext ContextOf(fabric::Op& op, Change& change);
//     SearchContext ContextOf(fabric::Op& op, std::string_view key, std::string& value);
//     Task<Attempt> TryChange(ChangeContext& context);               // under context.pin
//     Task<bool> TrySearch(SearchContext& context);                  // under context.pin
//
// A change, in this order:
//   - it waits without a pin while another change of the same key is under way in this client, and may be
//     coalesced with it (change_queue.h);
//   - it takes a pin, and up to kEagerAttempts attempts under it;
//   - if they all met other changes, or one ended with kContended, it gives back its draft and its pin, waits
//     and starts anew (retry_policy.h);
//   - if there is no memory, a look says whether the change is refused anyway;
//   - if there is no memory for the value of its last passenger, it releases its passengers and starts anew
//     with its own;
//   - it completes its passengers with its result. A change that is destroyed on the way gives them up
//     (queued_change.h).
// A search takes a pin for every attempt and waits in the same way. If the client has asked for that, the
// searches of one key that it has in flight share trips (search_ticket.h).
//
// A template: between the virtual function and the engine's attempt is neither a call through a pointer nor a
// coroutine but the driver itself. It is instantiated once, in the .cc file that defines TryChange.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/hash.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/kit/change.h"
#include "index/kit/change_queue.h"
#include "index/kit/context.h"
#include "index/kit/key_queue.h"
#include "index/kit/queued_change.h"
#include "index/kit/retry_policy.h"
#include "index/kit/search_ticket.h"
#include "pool/client.h"
#include "pool/memory/block.h"

namespace farside::index {

template <class Table>
class KeyedIndex : public Index {
 public:
  Task<bool> Get(fabric::Op& op, std::string_view key, std::string& value) final {
    if (shares_searches_) [[unlikely]]
      return GetShared(op, key, value);
    return table().SearchAlone(op, key, value);
  }
  Task<PutOutcome> Put(fabric::Op& op, std::string_view key, std::string_view value) final {
    return Execute<PutOutcome>(op, Change(ChangeKind::kPut, key, value));
  }
  Task<bool> Insert(fabric::Op& op, std::string_view key, std::string_view value) final {
    return Execute<bool>(op, Change(ChangeKind::kInsert, key, value));
  }
  Task<bool> Update(fabric::Op& op, std::string_view key, std::string_view value) final {
    return Execute<bool>(op, Change(ChangeKind::kUpdate, key, value));
  }
  Task<bool> Delete(fabric::Op& op, std::string_view key) final {
    return Execute<bool>(op, Change(ChangeKind::kDelete, key));
  }
  Task<bool> CompareAndSet(fabric::Op& op, std::string_view key, std::string_view expected,
                           std::string_view desired) final {
    Change change(ChangeKind::kCompareAndSet, key, desired);
    change.expected = expected;
    return Execute<bool>(op, change);
  }
  Task<uint64_t> Increment(fabric::Op& op, std::string_view key, uint64_t delta) final {
    Change change(ChangeKind::kIncrement, key);
    change.delta = delta;
    return Execute<uint64_t>(op, change);
  }
  // A change like any other, in the queue of its key; no other kind of change is coalesced with it.
  Task<bool> Touch(fabric::Op& op, fabric::FarAddr block, std::span<const std::byte> bytes) final {
    const Result<pool::BlockView> record = table().DecodeRecord(bytes);
    if (!record.ok()) return NotMoved();
    Change change(ChangeKind::kTouch, record->key, record->value);
    change.victim = block;
    return Execute<bool>(op, change);
  }

 protected:
  // Of the engine's options, `backoff` is the first pause of an operation that waits, and `share_searches`
  // whether searches of one key share trips.
  template <class Options>
  KeyedIndex(pool::PoolClient& pool, const Options& options)
      : pool_(pool), backoff_(options.backoff), shares_searches_(options.share_searches) {}

  // What an engine may say otherwise, by members of the same name.
  // An engine whose first look at a key needs no coroutine of its own begins with that, and goes on with
  // SearchUntilDecided.
  Task<bool> SearchAlone(fabric::Op& op, std::string_view key, std::string& value) {
    return SearchUntilDecided(op, key, value, std::nullopt);
  }
  static constexpr int kEagerAttempts = 8;
  static Status CheckKey(std::string_view /*key*/) { return OkStatus(); }
  // The record in a block of the table.
  static Result<pool::BlockView> DecodeRecord(std::span<const std::byte> bytes) {
    return pool::DecodeBlock(bytes);
  }
  static Status CheckChange(const Change& change) { return pool::CheckBlockSizes(change.key, change.value); }

  pool::PoolClient& pool() const { return pool_; }
  // For operations that read more than one key: scans, cursors, statistics.
  RetryPolicy RetryPolicySince(uint64_t catalogs, fabric::NodeId node) const {
    return RetryPolicy(pool_, node, backoff_, catalogs);
  }

  // Attempts until one decides. `catalogs`: pool().known_catalog_changes() when the operation began, if it
  // has held a pin already.
  Task<bool> SearchUntilDecided(fabric::Op& op, std::string_view key, std::string& value,
                                std::optional<uint64_t> catalogs) {
    const Status accepted = table().CheckKey(key);
    if (!accepted.ok()) co_return accepted.error();
    auto context = table().ContextOf(op, key, value);
    const uint64_t began_with = catalogs.value_or(context.catalogs);
    if (catalogs.has_value()) {
      const Status unchanged = RetryPolicy::CheckCatalogs(pool_, began_with);
      if (!unchanged.ok()) co_return unchanged.error();
    }
    std::optional<RetryPolicy> policy;
    while (true) {
      context.pin.emplace(pool_.Begin());
      const Result<bool> found = co_await table().TrySearch(context).Outcome();
      context.pin.reset();
      if (found.ok()) co_return EndSearch(op, *found);
      if (!policy.has_value()) policy.emplace(pool_, context.node, backoff_, began_with);
      co_await policy->AwaitRetry(op, found.error());
    }
  }
  static bool EndSearch(fabric::Op& op, bool found) {
    op.End(fabric::OpKind::kSearch, found ? fabric::OpOutcome::kDone : fabric::OpOutcome::kRefused);
    return found;
  }

 private:
  static Task<bool> NotMoved() { co_return false; }

  // An error of the search is taken as its outcome, so that the ticket ends with the coroutine. If the error
  // ended the coroutine where it awaits, the ticket would stay until the task is destroyed, and the searches
  // behind it would wait for that.
  Task<bool> GetShared(fabric::Op& op, std::string_view key, std::string& value) {
    const uint64_t catalogs = pool_.known_catalog_changes();
    SearchTicket ticket(searches_, op.client(), Hash64(AsBytes(key)), key, value);
    if (!ticket.is_first()) {
      {
        const pool::PoolClient::UnpinnedWait wait(pool_);
        co_await ticket;
      }
      if (ticket.found().has_value()) co_return EndSearch(op, *ticket.found());
      const Status unchanged = RetryPolicy::CheckCatalogs(pool_, catalogs);
      if (!unchanged.ok()) co_return unchanged.error();
      ticket.ServeWaiting();
    }
    const Result<bool> found = co_await table().SearchAlone(op, key, value).Outcome();
    if (found.ok()) ticket.Tell(*found);
    co_return found;  // after an error, the others search for themselves
  }

  // For as long as a change may be destroyed on the way.
  template <class Context>
  class GivesUp {
   public:
    GivesUp(QueuedChange& queued, const Context& context) : queued_(queued), context_(context) {}
    GivesUp(const GivesUp&) = delete;
    GivesUp& operator=(const GivesUp&) = delete;
    ~GivesUp() {
      if (queued_.has_passengers()) queued_.GiveUp(context_.MayHaveEffect());
    }

   private:
    QueuedChange& queued_;
    const Context& context_;
  };

  template <class Answer>
  Task<Answer> Execute(fabric::Op& op, Change change) {
    const Status accepted = table().CheckChange(change);
    if (!accepted.ok()) co_return accepted.error();
    auto context = table().ContextOf(op, change);
    QueuedChange queued(pool_, queue_, context, backoff_);
    if (!queued.is_first()) {
      const bool coalesced = co_await queued.AwaitTurn();
      if (coalesced) co_return EndChange<Answer>(op, change.kind, context.result);
    }
    const GivesUp gives_up(queued, context);
    while (true) {
      context.pin.emplace(pool_.Begin());
      Result<Attempt> outcome = Attempt::kRetry;
      for (context.attempt = 0; context.attempt < Table::kEagerAttempts; ++context.attempt) {
        outcome = co_await table().TryChange(context).Outcome();
        if (!outcome.ok() || *outcome == Attempt::kDone) break;
        queued.CountOutpaced();
        op.CountRetry();
      }
      context.Unpin();
      if (outcome.ok() && *outcome == Attempt::kDone) break;
      Error error = outcome.ok() ? queued.Outpaced() : outcome.error();
      if (error.code() == ErrorCode::kOutOfMemory) {
        const bool refused = co_await IsRefused(op, change, context.result);
        if (refused) break;
      }
      co_await queued.AwaitRetry(std::move(error));
    }
    queued.Complete();
    co_return EndChange<Answer>(op, change.kind, context.result);
  }

  // An engine may look for memory before it looks at the value. A change that is refused needs none; and that
  // a value is no counter is said first: with more memory it would be none either. (A put is never refused,
  // and a touch asks whether memory is at hand.)
  Task<bool> IsRefused(fabric::Op& op, const Change& change, Changed& result) {
    if (change.kind == ChangeKind::kPut || change.kind == ChangeKind::kTouch) co_return false;
    std::string value;
    auto context = table().ContextOf(op, change.key, value);
    context.pin.emplace(pool_.Begin());
    const Result<bool> found = co_await table().TrySearch(context).Outcome();
    context.pin.reset();
    if (!found.ok()) co_return false;  // the error of the change stands
    std::optional<std::string_view> known;
    if (*found) known = value;
    const Result<Decision> decision = Decide(change, known);
    if (!decision.ok()) co_return decision.error();
    if (decision->applied) co_return false;
    result = {.was_present = *found, .applied = false};
    co_return true;
  }

  template <class Answer>
  static Answer EndChange(fabric::Op& op, ChangeKind kind, const Changed& changed) {
    EndOp(op, kind, changed);
    if constexpr (std::is_same_v<Answer, PutOutcome>) {
      if (!changed.told) return PutOutcome::kNotTold;
      return changed.was_present ? PutOutcome::kReplaced : PutOutcome::kInserted;
    } else if constexpr (std::is_same_v<Answer, bool>) {
      return changed.applied;
    } else {
      return changed.counter;
    }
  }

  static void EndOp(fabric::Op& op, ChangeKind kind, const Changed& changed) {
    const fabric::OpOutcome outcome =
        changed.applied ? fabric::OpOutcome::kDone : fabric::OpOutcome::kRefused;
    switch (kind) {
      case ChangeKind::kPut:
      case ChangeKind::kIncrement:
        return op.End(changed.was_present ? fabric::OpKind::kUpdate : fabric::OpKind::kInsert,
                      fabric::OpOutcome::kDone);
      case ChangeKind::kInsert: return op.End(fabric::OpKind::kInsert, outcome);
      case ChangeKind::kUpdate:
      case ChangeKind::kCompareAndSet: return op.End(fabric::OpKind::kUpdate, outcome);
      case ChangeKind::kDelete: return op.End(fabric::OpKind::kDelete, outcome);
      case ChangeKind::kTouch: return op.End(fabric::OpKind::kMaintenance, outcome);
    }
  }

  Table& table() { return static_cast<Table&>(*this); }

  pool::PoolClient& pool_;
  const Nanos backoff_;
  const bool shares_searches_;
  ChangeQueue queue_;
  KeyQueue searches_;  // those that share trips
};

}  // namespace farside::index
