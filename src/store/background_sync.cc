#include "store/background_sync.h"

#include <chrono>

#include "base/clock.h"

namespace farside::store {
namespace {

constexpr Nanos kTick = std::chrono::milliseconds(1);

// Never ends; it is destroyed with its sync.
Task<Done> Tick(fabric::Op& op) {
  while (true) co_await op.Pause(kTick);
}

}  // namespace

// A client that is offline settles what it has retired, and answers clients that want room, by a sync.
Task<bool> Run(fabric::Op& op, pool::PoolClient& pool, Errand errand, const std::atomic<bool>* wanted) {
  bool disowned = false;
  if (errand == Errand::kDisown) disowned = co_await pool.Disown(op, wanted);
  if (errand != Errand::kSync) co_await pool.GoOffline(op);  // if it can
  co_await pool.KeepUp(op);
  if (errand == Errand::kSync || !pool.OwesRoom()) co_return disowned;
  disowned = co_await pool.Disown(op, wanted);
  co_await pool.GoOffline(op);
  co_await pool.KeepUp(op);  // tells the client that wants room
  co_return disowned;
}

BackgroundSync::BackgroundSync(Registration& registration, Errand errand, const std::atomic<bool>* wanted)
    : registration_(registration),
      errand_(errand),
      op_(registration.client(), fabric::OpKind::kMaintenance),
      sync_(Run(op_, registration.pool(), errand, wanted)) {
  sync_.Start();
}

void BackgroundSync::KeepPollsShort() {
  if (tick_.has_value()) return;
  tick_.emplace(Tick(op_));
  tick_->Start();
}

Result<bool> BackgroundSync::TakeResult() {
  Result<bool> synced = sync_.TakeResult();
  if (synced.ok()) op_.End(fabric::OpKind::kMaintenance, fabric::OpOutcome::kDone);
  return synced;
}

}  // namespace farside::store
