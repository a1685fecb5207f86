#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include <fmt/format.h>

#include "base/random.h"
#include "pool/open.h"
#include "tools/bench_world.h"

namespace farside::tools {
namespace {

constexpr auto kProgressPause = std::chrono::milliseconds(10);

class EmbeddedWorld final : public BenchWorld {
 public:
  explicit EmbeddedWorld(std::unique_ptr<pool::OpenedPool> pool) : pool_(std::move(pool)) {}

  Result<std::unique_ptr<fabric::Client>> Connect(uint32_t) override { return pool_->fabric->Connect(); }

  Status Run(std::span<const std::unique_ptr<BenchClient>> clients, BenchPhase& phase, uint32_t depth,
             const Progress& progress) override {
    std::latch ready(static_cast<ptrdiff_t>(clients.size()));
    std::atomic<size_t> running(clients.size());
    std::vector<std::jthread> threads;
    for (const std::unique_ptr<BenchClient>& client : clients) {
      threads.emplace_back([&ready, &running, &phase, depth, client = client.get()] {
        ready.arrive_and_wait();
        Drive(*client, phase, depth);
        running.fetch_sub(1);
      });
    }
    while (running.load() > 0) {
      progress(phase.done());
      std::this_thread::sleep_for(kProgressPause);
    }
    return OkStatus();
  }

 private:
  static void Drive(BenchClient& client, BenchPhase& phase, uint32_t depth) {
    client.Start(phase, depth);
    while (!client.done()) {
      if (client.client().Poll()) continue;
      phase.Fail(Error(ErrorCode::kUnavailable, "an operation waits for something that is not in flight"));
      return;
    }
  }

  const std::unique_ptr<pool::OpenedPool> pool_;
};

}  // namespace

Result<std::unique_ptr<BenchWorld>> MakeEmbeddedWorld(const BenchPlan& plan) {
  Random random(plan.seed);
  pool::OpenOptions options;
  options.format = FormatFor(plan);
  options.random = &random;
  Result<std::unique_ptr<pool::OpenedPool>> pool =
      pool::OpenPool(fmt::format("embedded:?size={}&nodes={}", plan.region_bytes, plan.nodes), options);
  if (!pool.ok()) return pool.error();
  return std::unique_ptr<BenchWorld>(std::make_unique<EmbeddedWorld>(std::move(*pool)));
}

}  // namespace farside::tools
