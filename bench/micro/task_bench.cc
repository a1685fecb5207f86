// What a coroutine costs: awaiting a task that ends at once, a chain of them, and one that suspends.
#include <coroutine>
#include <cstdint>

#include <benchmark/benchmark.h>

#include "farside/task.h"

namespace farside {
namespace {

constexpr int64_t kAwaitsPerTask = 1000;

// The call that a task replaces.
[[gnu::noinline]] Result<uint64_t> CallPlain(uint64_t n) { return n + 1; }

Task<uint64_t> Leaf(uint64_t n) { co_return n + 1; }
Task<uint64_t> Inner(uint64_t n) { co_return co_await Leaf(n); }
Task<uint64_t> Outer(uint64_t n) { co_return co_await Inner(n); }

struct Parking {
  std::coroutine_handle<>& parked;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiter) { parked = waiter; }
  void await_resume() const {}
};
Task<uint64_t> Suspending(std::coroutine_handle<>& parked, uint64_t n) {
  co_await Parking{parked};
  co_return n + 1;
}

template <Task<uint64_t> (*kCallee)(uint64_t)>
Task<uint64_t> AwaitMany() {
  uint64_t n = 0;
  for (int64_t i = 0; i < kAwaitsPerTask; ++i) n = co_await kCallee(n);
  co_return n;
}

Task<uint64_t> SuspendMany(std::coroutine_handle<>& parked) {
  uint64_t n = 0;
  for (int64_t i = 0; i < kAwaitsPerTask; ++i) n = co_await Suspending(parked, n);
  co_return n;
}

void PlainCall(benchmark::State& state) {
  uint64_t n = 0;
  for (auto _ : state) benchmark::DoNotOptimize(n = *CallPlain(n));
}
BENCHMARK(PlainCall);

template <Task<uint64_t> (*kCallee)(uint64_t)>
void Await(benchmark::State& state) {
  while (state.KeepRunningBatch(kAwaitsPerTask)) {
    Task<uint64_t> task = AwaitMany<kCallee>();
    task.Start();
    benchmark::DoNotOptimize(task.TakeResult());
  }
}
BENCHMARK(Await<Leaf>)->Name("AwaitTask");
BENCHMARK(Await<Outer>)->Name("AwaitChainOfThreeTasks");

void AwaitTaskThatSuspends(benchmark::State& state) {
  std::coroutine_handle<> parked;
  while (state.KeepRunningBatch(kAwaitsPerTask)) {
    Task<uint64_t> task = SuspendMany(parked);
    task.Start();
    while (!task.done()) parked.resume();
    benchmark::DoNotOptimize(task.TakeResult());
  }
}
BENCHMARK(AwaitTaskThatSuspends);

}  // namespace
}  // namespace farside
