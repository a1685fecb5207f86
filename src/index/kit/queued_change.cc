#include "index/kit/queued_change.h"

#include <fmt/format.h>

#include <utility>

#include "base/mutant.h"
#include "index/kit/mutants.h"
#include "index/kit/retry_policy.h"

namespace farside::index {

namespace {

// No client is outpaced so often by others; in damaged memory, each attempt may find the same.
constexpr uint64_t kMostOutpaced = 20'000;

}  // namespace

void ChangeContext::Unpin() {
  if (!Mutant(kit::kDraftWithoutPin)) draft.Discard();
  if (!Mutant(kit::kWaitsPinned)) pin.reset();
}

Task<bool> QueuedChange::AwaitTurn() {
  waiting_since_ = context_.op.client().Now();
  {
    const pool::PoolClient::UnpinnedWait wait(pool_);
    co_await ticket_;
  }
  if (ticket_.result().has_value()) {
    if (!ticket_.result()->ok()) co_return ticket_.result()->error();
    context_.result = **ticket_.result();
    co_return true;
  }
  const Status unchanged = RetryPolicy::CheckCatalogs(pool_, context_.catalogs);
  if (!unchanged.ok()) co_return unchanged.error();
  if (ticket_.Coalesce(last_value_)) context_.change.value = last_value_;
  if (Mutant(kit::kCompletedTooEarly)) ticket_.Complete(Changed{.was_present = true, .applied = true});
  co_return false;
}

Task<Done> QueuedChange::AwaitRetry(Error error) {
  const bool shares_failure = Mutant(kit::kPassengersShareTheFailure);
  if (error.code() == ErrorCode::kOutOfMemory && ticket_.has_passengers() && !shares_failure) {
    // There may be memory for its own value.
    ticket_.Release();
    if (!Mutant(kit::kValueOfAPassenger)) context_.change.value = own_value_;
    const Status unchanged = RetryPolicy::CheckCatalogs(pool_, context_.catalogs);
    if (!unchanged.ok()) co_return unchanged.error();
    co_return Done{};
  }
  if (outpaced_ >= kMostOutpaced) {
    ticket_.Complete(error);
    co_return error;
  }
  if (!waiting_since_.has_value()) waiting_since_ = context_.op.client().Now();
  const RetryPolicy policy(pool_, context_.node, backoff_, context_.catalogs, waiting_since_);
  const Result<Done> waited = co_await policy.AwaitRetry(context_.op, std::move(error)).Outcome();
  if (!waited.ok()) ticket_.Complete(waited.error());
  co_return waited;
}

void QueuedChange::GiveUp(bool may_have_effect) {
  if (!may_have_effect || Mutant(kit::kReleasedInDoubt)) return ticket_.Release();
  ticket_.Complete(Error(ErrorCode::kOutcomeUnknown,
                         "the operation was coalesced with another one of the same key, which was given up "
                         "on the way"));
}

Error QueuedChange::Outpaced() const {
  return Error(ErrorCode::kContended,
               fmt::format("others changed the key's place in {} attempts; retry later, and if it happens "
                           "again, run farside fsck",
                           outpaced_));
}

}  // namespace farside::index
