// The operations that change a key, for tables that carry out every Change by one function of their own:
//
//   class Table final : public ChangingIndex<Table> {
//    private:
//     friend class ChangingIndex<Table>;
//     Task<Changed> Modify(fabric::Op& op, Change change);
//
// A template: nothing stands between an operation and Modify, neither a coroutine nor a virtual call. It is
// instantiated once, where Modify is defined.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/index.h"
#include "index/kit/change.h"

namespace farside::index {

template <class Table>
class ChangingIndex : public Index {
 public:
  Task<PutOutcome> Put(fabric::Op& op, std::string_view key, std::string_view value) final {
    const Changed changed = co_await table().Modify(op, Change(ChangeKind::kPut, key, value));
    op.End(changed.was_present ? fabric::OpKind::kUpdate : fabric::OpKind::kInsert, fabric::OpOutcome::kDone);
    co_return changed.was_present ? PutOutcome::kReplaced : PutOutcome::kInserted;
  }

  Task<bool> Insert(fabric::Op& op, std::string_view key, std::string_view value) final {
    const Changed changed = co_await table().Modify(op, Change(ChangeKind::kInsert, key, value));
    op.End(fabric::OpKind::kInsert, OutcomeOf(changed));
    co_return changed.applied;
  }

  Task<bool> Update(fabric::Op& op, std::string_view key, std::string_view value) final {
    const Changed changed = co_await table().Modify(op, Change(ChangeKind::kUpdate, key, value));
    op.End(fabric::OpKind::kUpdate, OutcomeOf(changed));
    co_return changed.applied;
  }

  Task<bool> Delete(fabric::Op& op, std::string_view key) final {
    const Changed changed = co_await table().Modify(op, Change(ChangeKind::kDelete, key));
    op.End(fabric::OpKind::kDelete, OutcomeOf(changed));
    co_return changed.applied;
  }

  Task<bool> CompareAndSet(fabric::Op& op, std::string_view key, std::string_view expected,
                           std::string_view desired) final {
    Change change(ChangeKind::kCompareAndSet, key, desired);
    change.expected = expected;
    const Changed changed = co_await table().Modify(op, change);
    op.End(fabric::OpKind::kUpdate, OutcomeOf(changed));
    co_return changed.applied;
  }

  Task<uint64_t> Increment(fabric::Op& op, std::string_view key, uint64_t delta) final {
    Change change(ChangeKind::kIncrement, key);
    change.delta = delta;
    const Changed changed = co_await table().Modify(op, change);
    op.End(changed.was_present ? fabric::OpKind::kUpdate : fabric::OpKind::kInsert, fabric::OpOutcome::kDone);
    co_return changed.counter;
  }

 private:
  static fabric::OpOutcome OutcomeOf(const Changed& changed) {
    return changed.applied ? fabric::OpOutcome::kDone : fabric::OpOutcome::kRefused;
  }
  Table& table() { return static_cast<Table&>(*this); }
};

}  // namespace farside::index
