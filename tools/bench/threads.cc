#include <unistd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include <fmt/format.h>

#include "base/random.h"
#include "pool/region/open.h"
#include "tools/bench/world.h"
#include "tools/common/daemon.h"
#include "tools/common/descriptor_limit.h"

namespace farside::tools {
namespace {

constexpr auto kProgressPause = std::chrono::milliseconds(10);

class ThreadsWorld final : public BenchWorld {
 public:
  ThreadsWorld(std::unique_ptr<pool::OpenedPool> pool, std::vector<Daemon> daemons, bool tidies_up)
      : daemons_(std::move(daemons)), pool_(std::move(pool)), tidies_up_(tidies_up) {}

  bool tidies_up() const override { return tidies_up_; }

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

  const std::vector<Daemon> daemons_;  // outlive those who use their memory
  const std::unique_ptr<pool::OpenedPool> pool_;
  const bool tidies_up_;
};

// Memory nodes of our own, in processes of their own.
Result<std::vector<Daemon>> StartDaemons(const BenchPlan& plan) {
  std::vector<Daemon> daemons;
  for (uint32_t node = 0; node < plan.nodes; ++node) {
    std::vector<std::string> arguments = {"--quiet", "--size", std::to_string(plan.region_bytes), "--clients",
                                          std::to_string(FormatFor(plan).client_slots)};
    if (plan.fabric == BenchFabric::kTcp) {
      arguments.insert(arguments.end(), {"--listen", "tcp://127.0.0.1:0"});
    } else {
      arguments.insert(arguments.end(), {"--shm", fmt::format("bench-{}-{}", ::getpid(), node)});
    }
    Result<Daemon> daemon = Daemon::Start(arguments);
    if (!daemon.ok()) return daemon.error();
    daemons.push_back(std::move(*daemon));
  }
  return daemons;
}

// "tcp://a", "tcp://b" as "tcp://a,b".
std::string UrlOfAll(const std::vector<Daemon>& daemons, std::string_view scheme, std::string_view prefix) {
  std::string url;
  for (const Daemon& daemon : daemons) {
    const std::string one = daemon.Url(scheme);
    url += url.empty() ? one : "," + one.substr(prefix.size());
  }
  return url;
}

}  // namespace

Result<std::unique_ptr<BenchWorld>> MakeThreadsWorld(const BenchPlan& plan) {
  // A client has a connection to every node. Memory of this process takes none.
  if (plan.fabric != BenchFabric::kEmbedded) {
    constexpr uint64_t kOthers = 64;
    const Status raised = RaiseDescriptorLimit(uint64_t{plan.clients} * plan.nodes + kOthers);
    if (!raised.ok()) return raised.error();
  }
  Random random(plan.seed);
  pool::OpenOptions options;
  options.format = FormatFor(plan);
  options.random = &random;
  std::vector<Daemon> daemons;
  std::string url = plan.url;
  if (plan.fabric == BenchFabric::kEmbedded)
    url = fmt::format("embedded:?size={}&nodes={}", plan.region_bytes, plan.nodes);
  if (plan.fabric == BenchFabric::kShm || plan.fabric == BenchFabric::kTcp) {
    Result<std::vector<Daemon>> started = StartDaemons(plan);
    if (!started.ok()) return started.error();
    daemons = std::move(*started);
    const bool tcp = plan.fabric == BenchFabric::kTcp;
    url = UrlOfAll(daemons, tcp ? "tcp" : "shm", tcp ? "tcp://" : "shm:");
  }
  Result<std::unique_ptr<pool::OpenedPool>> pool = pool::OpenPool(url, options);
  if (!pool.ok()) return pool.error();
  const bool tidies_up = plan.fabric == BenchFabric::kUrl;
  return std::unique_ptr<BenchWorld>(
      std::make_unique<ThreadsWorld>(std::move(*pool), std::move(daemons), tidies_up));
}

}  // namespace farside::tools
