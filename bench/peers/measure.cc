#include "bench/peers/measure.h"

#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "base/histogram.h"
#include "base/random.h"

namespace farside::peers {
namespace {

// What a client has done. One thread's business until it has ended.
struct Tally {
  Histogram latency;  // in ns
  uint64_t operations = 0;
  double seconds = 0;
  std::optional<Error> error;
};

void RunClient(Connection& connection, const RunPlan& plan, const Manner& manner, Random random,
               std::latch& begin, const std::atomic<bool>& stop, Tally& tally) {
  const SteadyClock clock;
  Batch batch(plan.depth, plan.value_size);
  begin.arrive_and_wait();
  const Nanos began = clock.Now();
  Nanos ended = began;
  do {  // one batch at least, however late this thread gets a processor
    batch.Draw(plan.operation, random, plan.records);
    const Nanos asked = clock.Now();
    if (const Status done = connection.Run(plan.operation, batch, manner); !done.ok()) {
      tally.error = done.error();
      return;
    }
    ended = clock.Now();
    tally.latency.Record(static_cast<uint64_t>((ended - asked).count()));
    tally.operations += batch.size();
  } while (!stop.load(std::memory_order_relaxed));
  tally.seconds = std::chrono::duration<double>(ended - began).count();
}

}  // namespace

Result<Figures> Measure(std::span<const std::unique_ptr<Connection>> connections, const RunPlan& plan,
                        const Manner& manner, Interrupt& interrupt) {
  std::vector<std::unique_ptr<Tally>> tallies;
  for (size_t client = 0; client < connections.size(); ++client) tallies.push_back(std::make_unique<Tally>());
  std::latch begin(static_cast<std::ptrdiff_t>(connections.size()) + 1);
  std::atomic<bool> stop{false};
  const Random random(plan.seed);
  std::vector<std::jthread> threads;
  for (size_t client = 0; client < connections.size(); ++client) {
    threads.emplace_back(RunClient, std::ref(*connections[client]), std::cref(plan), std::cref(manner),
                         random.Fork(client), std::ref(begin), std::cref(stop), std::ref(*tallies[client]));
  }
  begin.arrive_and_wait();
  Status waited = interrupt.WaitFor(plan.duration);
  stop.store(true, std::memory_order_relaxed);
  threads.clear();  // joins them
  if (!waited.ok()) return waited.error();

  Figures figures;
  Histogram latency;
  for (const std::unique_ptr<Tally>& tally : tallies) {
    if (tally->error.has_value()) return *tally->error;
    latency.Merge(tally->latency);
    if (tally->seconds > 0) figures.ops_per_second += static_cast<double>(tally->operations) / tally->seconds;
  }
  figures.p50_us = static_cast<double>(latency.ValueAtQuantile(0.5)) / 1000;
  figures.p99_us = static_cast<double>(latency.ValueAtQuantile(0.99)) / 1000;
  return figures;
}

Status PerformOnAll(Operation operation, Connection& connection, const Manner& manner, uint64_t records,
                    size_t value_size, Interrupt& interrupt) {
  constexpr uint64_t kBatchesPerGlance = 256;  // at whether the program was asked to end
  Batch batch(kLoadDepth, value_size);
  uint64_t batches = 0;
  for (uint64_t first = 0; first < records; first += kLoadDepth) {
    batch.Take(first, records);
    if (Status done = connection.Run(operation, batch, manner); !done.ok()) return done;
    if (++batches % kBatchesPerGlance != 0) continue;
    if (Status going_on = interrupt.WaitFor(Nanos{0}); !going_on.ok()) return going_on;
  }
  return OkStatus();
}

}  // namespace farside::peers
