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

BackgroundSync::BackgroundSync(Registration& registration)
    : registration_(registration),
      op_(registration.client(), fabric::OpKind::kMaintenance),
      sync_(registration.pool().KeepUp(op_)) {
  sync_.Start();
}

void BackgroundSync::KeepPollsShort() {
  if (tick_.has_value()) return;
  tick_.emplace(Tick(op_));
  tick_->Start();
}

Status BackgroundSync::TakeResult() {
  Status synced = sync_.TakeResult();
  if (synced.ok()) op_.End(fabric::OpKind::kMaintenance, fabric::OpOutcome::kDone);
  return synced;
}

}  // namespace farside::store
