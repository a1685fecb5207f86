#include <unistd.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"
#include "farside/pool.h"
#include "farside/session.h"
#include "farside/table.h"
#include "store/pool_state.h"
#include "tools/bench/session_table.h"
#include "tools/bench/world.h"
#include "tools/common/daemon.h"
#include "tools/common/descriptor_limit.h"

namespace farside::tools {
namespace {

constexpr auto kProgressPause = std::chrono::milliseconds(10);

class ThreadsWorld final : public BenchWorld {
 public:
  ThreadsWorld(const BenchPlan& plan, std::shared_ptr<store::PoolState> state, std::vector<Daemon> daemons)
      : plan_(plan), daemons_(std::move(daemons)), state_(std::move(state)), pool_(state_) {}

  Result<std::unique_ptr<BenchTable>> Join() override {
    if (!table_.has_value()) {
      // Not by Pool::CreateTable, which makes no tables that keep no records.
      Result<store::PoolState::MadeTable> made =
          state_->CreateOrOpen(plan_.table, plan_.engine_name, plan_.engine_options);
      if (!made.ok() && made.error().code() == ErrorCode::kAlreadyExists) return TableExists(plan_);
      if (!made.ok()) return made.error();
      if (!made->created) return TableExists(plan_);
      table_.emplace(std::move(made->table));
    }
    Result<Session> session = pool_.NewSession();
    if (!session.ok()) return session.error();
    return std::unique_ptr<BenchTable>(std::make_unique<SessionTable>(std::move(*session), *table_));
  }

  Status Run(std::span<const std::unique_ptr<BenchClient>> clients, BenchPhase& phase, uint32_t depth,
             const Progress& progress) override {
    std::latch ready(static_cast<ptrdiff_t>(clients.size()));
    std::atomic<size_t> running(clients.size());
    std::vector<std::jthread> threads;
    for (const std::unique_ptr<BenchClient>& client : clients) {
      threads.emplace_back([&ready, &running, &phase, depth, client = client.get()] {
        ready.arrive_and_wait();
        if (const Status ran = client->Run(phase, depth); !ran.ok()) phase.Fail(ran.error());
        running.fetch_sub(1);
      });
    }
    while (running.load() > 0) {
      progress(phase.done());
      std::this_thread::sleep_for(kProgressPause);
    }
    return OkStatus();
  }

  // A session that leaves waits until all others have synced, and they do so while they leave; so all leave
  // at once.
  Status TidyUp(std::span<const std::unique_ptr<BenchClient>> clients) override {
    if (!stays()) return OkStatus();
    std::mutex mutex;
    Status all = OkStatus();
    {
      std::vector<std::jthread> threads;
      for (const std::unique_ptr<BenchClient>& client : clients) {
        threads.emplace_back([&mutex, &all, client = client.get()] {
          const Status left = static_cast<SessionTable&>(client->table()).session().Close();
          const std::scoped_lock lock(mutex);
          if (!left.ok() && all.ok()) all = left;
        });
      }
    }
    // Each step is tried, whatever became of the others. A table that it has not made stays.
    if (table_.has_value()) {
      const Status dropped = pool_.DropTable(plan_.table);
      if (all.ok()) all = dropped;
    }
    const Status closed = pool_.Close();
    return all.ok() ? closed : all;
  }

  fabric::FlushCounts Flushed() const override { return state_->fabric().flushed(); }

  void Abandon() override {
    if (!stays()) state_->Abandon();
  }

 private:
  bool stays() const { return plan_.fabric == BenchFabric::kUrl; }

  const BenchPlan& plan_;
  const std::vector<Daemon> daemons_;  // outlive the clients of their memory
  const std::shared_ptr<store::PoolState> state_;
  Pool pool_;
  std::optional<Table> table_;
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
  store::PoolStateOptions options;
  options.open.format = FormatFor(plan);
  options.open.random = &random;
  options.client.operations_per_sync = plan.operations_per_sync;
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
  Result<std::shared_ptr<store::PoolState>> pool = store::PoolState::Open(url, options);
  if (!pool.ok()) return pool.error();
  return std::unique_ptr<BenchWorld>(
      std::make_unique<ThreadsWorld>(plan, std::move(*pool), std::move(daemons)));
}

}  // namespace farside::tools
