#include "tools/bench/run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/size.h"

namespace farside::tools {
namespace {

using Clients = std::vector<std::unique_ptr<BenchClient>>;

enum Stream : uint64_t { kLoadStream, kWarmupStream, kRunStream };

// Clients that load, if the load is not what is measured. In real time, a thousand clients that all begin
// with an empty table are in each other's way until it has grown, for longer than some of them take to fill
// it.
constexpr uint64_t kMostLoaders = 32;

Error Explain(const BenchPlan& plan, std::string_view during, const Error& error) {
  std::string text = fmt::format("{}, during the {}", error.message(), during);
  if (error.code() == ErrorCode::kOutOfMemory)
    text += fmt::format(" (each node has {}; if that is what is full, give it more with --size)",
                        FormatSize(plan.region_bytes));
  return Error(error.code(), std::move(text));
}

uint64_t InMillis(Nanos time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

// One benchmark under way.
class Bencher {
 public:
  Bencher(const BenchPlan& plan, const BenchProgress& progress, const BenchStop& stop)
      : plan_(plan), progress_(progress), stop_(stop) {}
  Bencher(const Bencher&) = delete;
  Bencher& operator=(const Bencher&) = delete;
  ~Bencher() {
    if (world_ != nullptr) world_->Abandon();
  }

  Result<BenchRun> Run() {
    Result<BenchRun> result = Measure();
    if (world_ == nullptr) return result;
    const Status tidied = world_->TidyUp(clients_);
    if (result.ok() && !tidied.ok()) return Explain(plan_, "end", tidied.error());
    return result;
  }

 private:
  static Error Stopped() { return Error(ErrorCode::kContended, "stopped, as a signal asked for"); }

  Result<BenchRun> Measure() {
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
    result.flushed = flushed_;
    result.model = world_->Model();
    result.records = frontier_.known();
    Result<BenchSize> size = clients_.front()->table().Measure();
    if (!size.ok()) return Explain(plan_, "count of memory", size.error());
    result.memory = size->memory;
    result.stats = std::move(size->stats);
    return result;
  }

  Status SetUp() {
    Result<std::unique_ptr<BenchWorld>> world = MakeBenchWorld(plan_);
    if (!world.ok()) return world.error();
    world_ = std::move(*world);
    for (uint32_t number = 0; number < plan_.clients; ++number) {
      if (stop_()) return Stopped();
      Result<std::unique_ptr<BenchTable>> table = world_->Join();
      if (!table.ok() && table.error().code() == ErrorCode::kAlreadyExists) return table.error();
      if (!table.ok()) return Explain(plan_, "set-up", table.error());
      clients_.push_back(std::make_unique<BenchClient>(number, std::move(*table)));
    }
    return OkStatus();
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
    options.puts = plan_.puts;
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
    const BenchTable& clock = clients_.front()->table();
    const Nanos begin = clock.Now();
    const fabric::FlushCounts flushed_before = world_->Flushed();
    const Status driven = world_->Run(clients_, phase, plan_.depth, [&](uint64_t done) {
      if (stop_() && !phase.failed()) phase.Fail(Stopped());
      if (!options.duration.has_value()) return progress_(what, done, options.operations, "operations");
      progress_(what, InMillis(clock.Now() - begin), InMillis(*options.duration), "ms");
    });
    if (!driven.ok()) return Explain(plan_, name, driven.error());
    if (phase.error().has_value()) return Explain(plan_, name, *phase.error());
    flushed_ = world_->Flushed() - flushed_before;
    auto all = std::make_unique<BenchTally>();
    for (const std::unique_ptr<BenchClient>& client : clients_) all->Add(client->tally());
    return all;
  }

  const BenchPlan& plan_;
  const BenchProgress& progress_;
  const BenchStop& stop_;
  workload::Frontier frontier_{plan_.records};
  std::unique_ptr<BenchWorld> world_;
  Clients clients_;              // ended before the world
  fabric::FlushCounts flushed_;  // in the last phase
};

}  // namespace

Result<BenchRun> RunBench(const BenchPlan& plan, const BenchProgress& progress, const BenchStop& stop) {
  return Bencher(plan, progress, stop).Run();
}

}  // namespace farside::tools
