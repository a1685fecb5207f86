// Pools for tests of the store: with a keeper that comes when it is called, and a clock that goes on a little
// whenever it is read, so that pauses end.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "farside/farside.h"
#include "store/access.h"
#include "store/pool_state.h"

namespace farside::store {

// The outcome of what must not fail.
template <class T>
T Must(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << result.error().ToString();
    std::abort();
  }
  return std::move(*result);
}

// Safe from any thread.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(Nanos tick = std::chrono::milliseconds(1)) : tick_(tick) {}

  Nanos Now() const override { return Nanos{now_.fetch_add(tick_.count(), std::memory_order_relaxed)}; }
  void Advance(Nanos by) { now_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  const Nanos tick_;
  mutable std::atomic<int64_t> now_{0};
};

inline std::shared_ptr<PoolState> OpenQuietPool(const Clock* clock,
                                                std::string_view url = "embedded:?size=16MiB") {
  PoolStateOptions options;
  options.open.clock = clock;
  options.keeper = false;
  return Must(PoolState::Open(url, options));
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() : state_(OpenQuietPool(&clock_)), pool_(state_), table_(Must(pool_.CreateTable("t"))) {}

  // Cuts the session off, as a client does that takes it for dead.
  void Fence(farside::Session& session) {
    const fabric::ClientId victim = Access::StateOf(session).registration().client().id();
    const std::unique_ptr<fabric::Client> fencer = Must(state_->fabric().Connect());
    fabric::Op op(*fencer, fabric::OpKind::kMaintenance);
    Must(fabric::Run(*fencer, fabric::FenceEverywhere(op, victim)));
  }
  static fabric::ClientId IdOf(farside::Session& session) {
    return Access::StateOf(session).registration().client().id();
  }

  TickingClock clock_;
  std::shared_ptr<PoolState> state_;
  Pool pool_;
  Table table_;
};

}  // namespace farside::store
