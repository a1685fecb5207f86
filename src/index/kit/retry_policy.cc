#include "index/kit/retry_policy.h"

#include "base/mutant.h"
#include "index/kit/mutants.h"

namespace farside::index {
namespace {

// While a node is out of reach no client can be fenced: what a dead client has locked stays locked until the
// node is back, and that may be never. A client that only sleeps may wake, so it is waited for.
constexpr int kMostLeasesWithoutANode = 2;

bool ReachesAll(const pool::PoolClient& pool) {
  for (size_t node = 0; node < pool.nodes(); ++node) {
    if (!pool.IsMember(static_cast<fabric::NodeId>(node))) return false;
  }
  return true;
}

}  // namespace

Status RetryPolicy::CheckCatalogs(pool::PoolClient& pool, uint64_t catalogs) {
  if (pool.known_catalog_changes() == catalogs || Mutant(kit::kPinsPastADrop)) return OkStatus();
  return Error(ErrorCode::kContended, "a table was made or dropped while the operation waited; retry");
}

Result<Nanos> RetryPolicy::PauseBeforeRetry(fabric::Op& op, Error error) const {
  if (!Allows(error)) return error;
  op.CountRetry();
  const Nanos waited = pool_.client().Now() - began_;
  if (waited >= kMostLeasesWithoutANode * lease_ && !ReachesAll(pool_)) {
    return Error(ErrorCode::kUnavailable,
                 "the operation waits for a client that may be dead, and that is not certain while a "
                 "memory node is out of reach; try again when all nodes are there");
  }
  const Nanos longest = waited < lease_ / 8 ? kLongestPause : lease_ / kPausesPerLease;
  return PauseAfter(waited, backoff_, longest);
}

Task<Done> RetryPolicy::AwaitRetry(fabric::Op& op, Error error) const {
  const Result<Nanos> pause = PauseBeforeRetry(op, std::move(error));
  if (!pause.ok()) co_return pause.error();
  {
    const pool::PoolClient::UnpinnedWait wait(pool_);
    co_await op.Pause(*pause);
    pool_.RequestSync();  // other clients may wait for this one to sync
    co_await pool_.Maintain(op);
  }
  const Status unchanged = CheckCatalogs(pool_, catalogs_);
  if (!unchanged.ok()) co_return unchanged.error();
  co_return Done{};
}

Task<Done> RetryPolicy::AwaitRetryPinned(fabric::Op& op, Error error, pool::Beats& beats) const {
  const Result<Nanos> pause = PauseBeforeRetry(op, std::move(error));
  if (!pause.ok()) co_return pause.error();
  co_await op.Pause(*pause);
  if (beats.Due()) co_await beats.Beat(op);
  co_return Done{};
}

}  // namespace farside::index
