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

Task<Done> RetryPolicy::AwaitRetry(fabric::Op& op, Error error) const {
  if (!Allows(error)) co_return error;
  op.CountRetry();
  const Nanos waited = pool_.client().Now() - began_;
  if (waited >= kMostLeasesWithoutANode * lease_ && !ReachesAll(pool_)) {
    co_return Error(ErrorCode::kUnavailable,
                    "the operation waits for a client that may be dead, and that is not certain while a "
                    "memory node is out of reach; try again when all nodes are there");
  }
  {
    const pool::PoolClient::UnpinnedWait wait(pool_);
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
