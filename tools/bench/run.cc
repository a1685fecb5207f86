#include "tools/bench/run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/size.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "pool/memory/reach.h"
#include "store/engines.h"
#include "tools/bench/keeper.h"

namespace farside::tools {
namespace {

using fabric::Op;
using fabric::OpKind;
using Clients = std::vector<std::unique_ptr<BenchClient>>;

enum Stream : uint64_t { kLoadStream, kWarmupStream, kRunStream };

// Where the load is not what is measured. In real time, a thousand clients that all begin with an empty table are in each
// other's way until it has grown, for longer than it takes some of them to fill it.
constexpr uint64_t kMostLoaders = 32;

class MemorySum final : public pool::Reach {
 public:
  void Mark(fabric::FarAddr, uint64_t bytes) override { memory_.index_bytes += bytes; }
  void MarkBlock(fabric::FarAddr, uint64_t bytes) override { memory_.block_bytes += bytes; }
  const BenchMemory& memory() const { return memory_; }

 private:
  BenchMemory memory_;
};

Error Explain(const BenchPlan& plan, std::string_view during, const Error& error) {
  std::string text = fmt::format("{}, during the {}", error.message(), during);
  if (error.code() == ErrorCode::kOutOfMemory)
    text += fmt::format(" (each node has {}; if that is what is full, give it more with --size)",
                        FormatSize(plan.region_bytes));
  return Error(error.code(), std::move(text));
}

// Others wait for those signs of life, but in real time, where hundreds share few processors, those who have ended must not
// keep them from working: all together they give some thousands in a second, however many they are.
Nanos IdlePause(const BenchPlan& plan) {
  constexpr Nanos kShortest = std::chrono::milliseconds(1);
  if (plan.fabric == BenchFabric::kSim) return kShortest;
  return std::max(kShortest, plan.clients * Nanos(std::chrono::microseconds(250)));
}

uint64_t InMillis(Nanos time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

// One benchmark under way.
class Bencher {
 public:
  Bencher(const BenchPlan& plan, const BenchProgress& progress) : plan_(plan), progress_(progress) {}

  Result<BenchRun> Run() {
    if (Status ready = SetUp(); !ready.ok()) return ready.error();
    BenchRun result;
    Result<std::unique_ptr<BenchTally>> load = Load();
    if (!load.ok()) return load.error();
    result.load = std::move(*load);
    if (plan_.mix.is_load) {
      result.run = std::move(result.load);
    } else {
      Result<std::unique_ptr<BenchTally>> warmed = RunPhase("warm-up", WarmupOptions());
      if (!warmed.ok()) return warmed.error();
      Result<std::unique_ptr<BenchTally>> run = RunPhase("run", MeasuredOptions());
      if (!run.ok()) return run.error();
      result.run = std::move(*run);
    }
    result.uses = world_->Uses();
    result.model = world_->Model();
    result.records = frontier_.known();
    if (Status counted = CountMemory(result); !counted.ok())
      return Explain(plan_, "count of memory", counted.error());
    if (world_->tidies_up()) {
      if (Status tidied = TidyUp(); !tidied.ok()) return Explain(plan_, "end", tidied.error());
    }
    return result;
  }

 private:
  Status SetUp() {
    Result<std::unique_ptr<BenchWorld>> world = MakeBenchWorld(plan_);
    if (!world.ok()) return world.error();
    world_ = std::move(*world);
    const std::unique_ptr<BenchKeeper> keeper = MakeKeeper();
    for (uint32_t number = 0; number < plan_.clients; ++number) {
      Result<std::unique_ptr<fabric::Client>> connected = world_->Connect(number % plan_.compute_nodes);
      if (!connected.ok()) return connected.error();
      pool::ClientOptions options;
      options.operations_per_sync = plan_.operations_per_sync;
      clients_.push_back(std::make_unique<BenchClient>(number, std::move(*connected), options));
      BenchClient& client = *clients_.back();
      const Result<bool> made =
          fabric::Run(client.client(),
                      client.Join(store::MakeEngine, plan_.table, plan_.engine_name, plan_.engine_options));
      if (!made.ok()) return Explain(plan_, "set-up", made.error());
      // It will be dropped, so it must not be somebody else's.
      if (number == 0 && !*made) {
        return Error(
            ErrorCode::kAlreadyExists,
            fmt::format("the pool has a table '{}' already; if nobody needs it, drop it", plan_.table));
      }
      if (keeper != nullptr) keeper->Add(client);
    }
    return OkStatus();
  }

  // Simulated time does not pass while nobody does anything.
  std::unique_ptr<BenchKeeper> MakeKeeper() const {
    return plan_.fabric == BenchFabric::kSim ? nullptr : std::make_unique<BenchKeeper>();
  }

  // Nothing, if there is no need: what only measures has nothing to find.
  Result<std::unique_ptr<BenchTally>> Load() {
    if (!plan_.verifies() && !plan_.mix.is_load) return std::unique_ptr<BenchTally>();
    BenchPhase::Options options = CommonOptions();
    options.shape.mix = *workload::FindMix("load");
    options.operations = plan_.records;
    options.stream = kLoadStream;
    if (!plan_.mix.is_load && plan_.fabric != BenchFabric::kSim) options.workers = kMostLoaders;
    return RunPhase("load", options);
  }

  BenchPhase::Options CommonOptions() const {
    BenchPhase::Options options;
    options.shape.mix = plan_.mix;
    options.shape.distribution = plan_.distribution;
    options.shape.records = plan_.records;
    options.shape.seed = plan_.seed;
    options.clients = plan_.clients;
    options.key_size = plan_.key_size;
    options.value_size = plan_.value_size;
    options.verify = plan_.verifies();
    options.window = plan_.window;
    options.idle_pause = IdlePause(plan_);
    return options;
  }
  BenchPhase::Options WarmupOptions() const {
    BenchPhase::Options options = CommonOptions();
    options.operations = plan_.warmup;
    options.stream = kWarmupStream;
    return options;
  }
  BenchPhase::Options MeasuredOptions() const {
    BenchPhase::Options options = CommonOptions();
    options.operations = plan_.operations;
    options.duration = plan_.duration;
    options.stream = kRunStream;
    return options;
  }

  Result<std::unique_ptr<BenchTally>> RunPhase(std::string_view name, const BenchPhase::Options& options) {
    BenchPhase phase(options, frontier_);
    const std::string what = fmt::format("{} of {}", name, plan_.engine_name);
    const fabric::Client& clock = clients_.front()->client();
    const Nanos begin = clock.Now();
    const Status driven = world_->Run(clients_, phase, plan_.depth, [&](uint64_t done) {
      if (!options.duration.has_value()) return progress_(what, done, options.operations, "operations");
      progress_(what, InMillis(clock.Now() - begin), InMillis(*options.duration), "ms");
    });
    if (!driven.ok()) return Explain(plan_, name, driven.error());
    if (phase.error().has_value()) return Explain(plan_, name, *phase.error());
    auto all = std::make_unique<BenchTally>();
    for (const std::unique_ptr<BenchClient>& client : clients_) all->Add(client->tally());
    return all;
  }

  Status CountMemory(BenchRun& result) {
    const std::unique_ptr<BenchKeeper> keeper = MakeKeeper();
    for (size_t i = 1; keeper != nullptr && i < clients_.size(); ++i) keeper->Add(*clients_[i]);
    BenchClient& client = *clients_.front();
    client.client().set_concurrency(1);
    Op op(client.client(), OpKind::kMaintenance);
    MemorySum sum;
    {
      const pool::PoolClient::Pin pin = client.session().pool().Begin();
      const Result<Done> walked = fabric::Run(client.client(), client.index().Walk(op, sum));
      if (!walked.ok()) return walked.error();
    }
    result.memory = sum.memory();
    Result<index::TableStats> stats = fabric::Run(client.client(), client.index().Stats(op));
    if (!stats.ok()) return stats.error();
    result.stats = std::move(*stats);
    return OkStatus();
  }

  // Leaves a pool that others use as it was. Who leaves has to wait until all others have moved on, and they do so while
  // they leave; so all leave at the same time, but for the one that drops the table, which waits for everybody.
  Status TidyUp() {
    std::mutex mutex;
    Status left_all = OkStatus();
    const auto leave = [&](BenchClient& client, bool drop) {
      client.client().set_concurrency(1);
      const Result<Done> left = fabric::Run(client.client(), client.Leave(drop));
      const std::scoped_lock lock(mutex);
      if (!left.ok() && left_all.ok()) left_all = left.error();
    };
    {
      const std::unique_ptr<BenchKeeper> keeper = MakeKeeper();
      if (keeper != nullptr) keeper->Add(*clients_.front());
      std::vector<std::jthread> threads;
      for (size_t i = 1; i < clients_.size(); ++i)
        threads.emplace_back([&leave, client = clients_[i].get()] { leave(*client, /*drop=*/false); });
    }
    if (left_all.ok()) leave(*clients_.front(), /*drop=*/true);
    return left_all;
  }

  const BenchPlan& plan_;
  const BenchProgress& progress_;
  workload::Frontier frontier_{plan_.records};
  std::unique_ptr<BenchWorld> world_;
  Clients clients_;  // ended before the world
};

}  // namespace

Result<BenchRun> RunBench(const BenchPlan& plan, const BenchProgress& progress) {
  return Bencher(plan, progress).Run();
}

}  // namespace farside::tools
