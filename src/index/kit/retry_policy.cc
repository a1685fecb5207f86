#include "index/kit/retry_policy.h"

#include "base/mutant.h"
#include "index/kit/mutants.h"

namespace farside::index {

Status RetryPolicy::CheckCatalogs(pool::PoolClient& pool, uint64_t catalogs) {
  if (pool.known_catalog_changes() == catalogs || Mutant(kit::kPinsPastADrop)) return OkStatus();
  return Error(ErrorCode::kContended, "a table was made or dropped while the operation waited; retry");
}

Task<Done> RetryPolicy::AwaitRetry(fabric::Op& op, Error error) const {
  if (!Allows(error)) co_return error;
  op.CountRetry();
  {
    const pool::PoolClient::UnpinnedWait wait(pool_);
    const Nanos waited = pool_.client().Now() - began_;
    const Nanos longest = waited < lease_ / 8 ? kLongestPause : lease_ / kPausesPerLease;
    co_await op.Pause(PauseAfter(waited, backoff_, longest));
    pool_.RequestSync();  // other clients may wait for this one to sync
    co_await pool_.Maintain(op);
  }
  const Status unchanged = CheckCatalogs(pool_, catalogs_);
  if (!unchanged.ok()) co_return unchanged.error();
  co_return Done{};
}

}  // namespace farside::index
