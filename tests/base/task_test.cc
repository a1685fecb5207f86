#include "farside/task.h"

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/heap_count.h"

namespace farside {
namespace {

// Where coroutines wait until the test lets them go on.
class Parking {
 public:
  struct Awaiter {
    Parking& parking;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> waiter) { parking.parked_ = waiter; }
    void await_resume() const {}
  };
  Awaiter Wait() { return Awaiter{*this}; }
  void Resume() { std::exchange(parked_, nullptr).resume(); }
  bool occupied() const { return parked_ != nullptr; }

 private:
  std::coroutine_handle<> parked_;
};

// Writes its name down when it is destroyed.
class Witness {
 public:
  Witness(std::vector<std::string>& log, std::string name) : log_(log), name_(std::move(name)) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { log_.push_back(name_); }

 private:
  std::vector<std::string>& log_;
  std::string name_;
};

using Log = std::vector<std::string>;

Error Damaged() { return Error(ErrorCode::kCorrupt, "damaged"); }

// Runs a task that never waits.
template <class T>
Result<T> Finish(Task<T> task) {
  task.Start();
  EXPECT_TRUE(task.done());
  return task.TakeResult();
}

// ---- laziness, values and errors

Task<int> Set(bool& ran, int value) {
  ran = true;
  co_return value;
}

// Given a task. When it is made, and later started. Expect that its body runs at the start and not before.
TEST(Task, RunsNothingBeforeItIsStarted) {
  bool ran = false;
  Task<int> task = Set(ran, 7);
  EXPECT_FALSE(ran);
  EXPECT_FALSE(task.done());
  task.Start();
  EXPECT_TRUE(ran);
  EXPECT_TRUE(task.done());
  EXPECT_EQ(*task.TakeResult(), 7);
}

// Given a task that is never started. When it is destroyed. Expect that its body never runs, and no leak.
TEST(Task, DestroyedBeforeItsStart_NeverRuns) {
  bool ran = false;
  { const Task<int> task = Set(ran, 7); }
  EXPECT_FALSE(ran);
}

// Given a task that was moved. Expect one coroutine, which the new owner runs and destroys; what the new
// owner held before is destroyed at once.
TEST(Task, MovesWithoutRunning) {
  bool ran = false;
  bool other_ran = false;
  Task<int> first = Set(ran, 7);
  Task<int> second = Set(other_ran, 8);
  second = std::move(first);
  EXPECT_EQ(*Finish(std::move(second)), 7);
  EXPECT_TRUE(ran);
  EXPECT_FALSE(other_ran);
}

Task<int> ReturnValue() { co_return 1; }
Task<int> ReturnError() { co_return Damaged(); }
Task<int> ReturnResult(bool good) {
  Result<int> result = good ? Result<int>(2) : Result<int>(Damaged());
  co_return result;
}
Task<Done> ReturnDone() { co_return Done{}; }

// Given the three things that a task can return. Expect the value or the error.
TEST(Task, EndsWithAValueAnErrorOrAResult) {
  EXPECT_EQ(*Finish(ReturnValue()), 1);
  EXPECT_EQ(Finish(ReturnError()).error().ToString(), "kCorrupt: damaged");
  EXPECT_EQ(*Finish(ReturnResult(true)), 2);
  EXPECT_EQ(Finish(ReturnResult(false)).error().code(), ErrorCode::kCorrupt);
  EXPECT_TRUE(Finish(ReturnDone()).ok());
}

Task<std::unique_ptr<int>> MakeUnique(int n) { co_return std::make_unique<int>(n); }
Task<std::unique_ptr<int>> PassUnique(std::unique_ptr<int> from) {
  std::unique_ptr<int> sum = co_await MakeUnique(*from + 1);
  Result<std::unique_ptr<int>> other = co_await MakeUnique(10).Outcome();
  *sum += **other;
  co_return std::move(sum);
}

// Given values that cannot be copied, as parameter, result and outcome. Expect them to arrive.
TEST(Task, CarriesMoveOnlyValues) {
  const Result<std::unique_ptr<int>> result = Finish(PassUnique(std::make_unique<int>(1)));
  EXPECT_EQ(**result, 12);
}

// ---- errors end the chain

enum class Ending { kValue, kError };

Task<int> Innermost(Log& log, Parking* parking, Ending ending) {
  const Witness witness(log, "innermost");
  if (parking != nullptr) co_await parking->Wait();
  if (ending == Ending::kError) co_return Damaged();
  co_return 1;
}
Task<int> Middle(Log& log, Parking* parking, Ending ending) {
  const Witness first(log, "middle's first");
  const Witness second(log, "middle's second");
  const int n = co_await Innermost(log, parking, ending);
  log.push_back("middle goes on");
  co_return n + 1;
}
Task<int> Outermost(Log& log, Parking* parking, Ending ending) {
  const Witness witness(log, "outermost");
  const int n = co_await Middle(log, parking, ending);
  log.push_back("outermost goes on");
  co_return n + 1;
}
Task<int> LooksAtOutcome(Log& log, Parking* parking, Ending ending) {
  const Result<int> outcome = co_await Outermost(log, parking, ending).Outcome();
  log.push_back("outcome seen");
  co_return outcome.ok() ? *outcome : -1;
}

const Log kUnwoundLog = {"innermost", "middle's second", "middle's first", "outermost"};

// Given three tasks, each awaiting the next. When the innermost fails at once. Expect that none of the others
// goes on, that all end with its error, and that locals die from the inside out.
TEST(TaskError, OfTheInnermostTask_EndsTheChain) {
  Log log;
  EXPECT_EQ(Finish(Outermost(log, nullptr, Ending::kError)).error().message(), "damaged");
  EXPECT_EQ(log, kUnwoundLog);
}

// As above, but when the innermost fails after it has waited. Expect the same.
TEST(TaskError, AfterASuspension_EndsTheChain) {
  Log log;
  Parking parking;
  {
    Task<int> task = Outermost(log, &parking, Ending::kError);
    task.Start();
    EXPECT_FALSE(task.done());
    parking.Resume();
    ASSERT_TRUE(task.done());
    EXPECT_EQ(task.TakeResult().error().message(), "damaged");
  }
  EXPECT_EQ(log, kUnwoundLog);
}

// Given a task that asks for the outcome of a chain. When the chain fails, at once or after waiting. Expect
// that the chain is destroyed, then that the task goes on with the error as a value.
TEST(TaskError, IsAValueForACallerThatAsksForTheOutcome) {
  for (const bool waits : {false, true}) {
    Log log;
    Parking parking;
    Task<int> task = LooksAtOutcome(log, waits ? &parking : nullptr, Ending::kError);
    task.Start();
    if (waits) parking.Resume();
    ASSERT_TRUE(task.done());
    EXPECT_EQ(*task.TakeResult(), -1);
    Log expected = kUnwoundLog;
    expected.push_back("outcome seen");
    EXPECT_EQ(log, expected);
  }
}

// Given the same chain. When it succeeds, at once or after waiting. Expect that each task goes on once, from
// the inside out, and that locals die as each task ends.
TEST(Task, ValuesTravelUpTheChain) {
  for (const bool waits : {false, true}) {
    Log log;
    Parking parking;
    Task<int> task = LooksAtOutcome(log, waits ? &parking : nullptr, Ending::kValue);
    task.Start();
    if (waits) parking.Resume();
    ASSERT_TRUE(task.done());
    EXPECT_EQ(*task.TakeResult(), 3);
    const Log expected = {"innermost",         "middle goes on", "middle's second", "middle's first",
                          "outermost goes on", "outermost",      "outcome seen"};
    EXPECT_EQ(log, expected);
  }
}

Task<int> FailsAfterWaiting(Parking& parking) {
  co_await parking.Wait();
  const int never = co_await ReturnError();  // ends this task from the inside of its own await
  co_return never;
}
Task<int> RetriesForEver(Parking& parking, int rounds) {
  int failures = 0;
  for (int i = 0; i < rounds; ++i) {
    const Result<int> outcome = co_await FailsAfterWaiting(parking).Outcome();
    if (!outcome.ok()) ++failures;
  }
  co_return failures;
}

// Given a loop over a task that waits and is then ended by an error of its own callee. Expect every round to
// see the error, although the failed frame is destroyed while its await has not returned.
TEST(TaskError, InALoopOfRetries_EndsEachRound) {
  Parking parking;
  Task<int> task = RetriesForEver(parking, 100);
  task.Start();
  while (!task.done()) parking.Resume();
  EXPECT_EQ(*task.TakeResult(), 100);
}

// ---- abandoning

struct Counted {
  explicit Counted(int& count) : live(count) { ++live; }
  Counted(const Counted& other) : live(other.live) { ++live; }
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --live; }
  int& live;
};

Task<int> WaitAtDepth(int depth, Parking& parking, int& live, Counted parameter) {
  const Counted local(live);
  const std::string text = "longer than what a string holds without the heap: " + std::to_string(depth);
  int n = 0;
  if (depth == 0) {
    co_await parking.Wait();
  } else if (depth % 2 == 0) {
    n = co_await WaitAtDepth(depth - 1, parking, live, parameter);
  } else {
    Task<int> callee = WaitAtDepth(depth - 1, parking, live, Counted(live));
    const Result<int> outcome = co_await callee.Outcome();
    n = *outcome;
  }
  co_return n + static_cast<int>(text.size() % 2);
}

// Given chains of 1 to 20 tasks whose innermost one waits. When the outermost is destroyed. Expect that every
// parameter and local of every frame is gone. (AddressSanitizer looks for frames and strings that leak.)
TEST(TaskAbandon, AtAnyDepth_FreesEveryLocal) {
  for (int depth = 0; depth < 20; ++depth) {
    Parking parking;
    int live = 0;
    {
      Task<int> task = WaitAtDepth(depth, parking, live, Counted(live));
      task.Start();
      EXPECT_FALSE(task.done());
      EXPECT_TRUE(parking.occupied());
      EXPECT_GE(live, 2 * (depth + 1));
    }
    EXPECT_EQ(live, 0) << "depth " << depth;
  }
}

// Given frames that were given back by a first chain. When the same chain is abandoned again and again.
// Expect that it runs in those frames: all of them came back.
TEST(TaskAbandon, GivesBackEveryFrame) {
  const auto abandon_one = [] {
    Log log;
    Parking parking;
    Task<int> task = Outermost(log, &parking, Ending::kValue);
    task.Start();
    log.reserve(8);
  };
  const auto allocations_of_one = [&] {
    const uint64_t before = HeapAllocations();
    abandon_one();
    return HeapAllocations() - before;
  };
  abandon_one();
  const uint64_t per_run = allocations_of_one();  // of the log and its strings
  for (int i = 0; i < 100; ++i) ASSERT_EQ(allocations_of_one(), per_run);
}

// ---- stack

[[gnu::noinline]] uintptr_t StackPointer() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

// The span of addresses that a stack was seen at.
class StackUse {
 public:
  void Note() {
    const uintptr_t here = StackPointer();
    lowest_ = lowest_ == 0 ? here : std::min(lowest_, here);
    highest_ = std::max(highest_, here);
  }
  size_t bytes() const { return highest_ - lowest_; }

 private:
  uintptr_t lowest_ = 0;
  uintptr_t highest_ = 0;
};

Task<int> NoteAndMaybeWait(StackUse& stack, Parking* parking, bool fail) {
  stack.Note();
  if (parking != nullptr) co_await parking->Wait();
  stack.Note();
  if (fail) co_return Damaged();
  co_return 1;
}
Task<int64_t> LoopOfAwaits(StackUse& stack, Parking* parking, int64_t rounds) {
  int64_t sum = 0;
  for (int64_t i = 0; i < rounds; ++i) sum += co_await NoteAndMaybeWait(stack, parking, false);
  co_return sum;
}
Task<int64_t> LoopOfOutcomes(StackUse& stack, Parking* parking, int64_t rounds) {
  int64_t failures = 0;
  for (int64_t i = 0; i < rounds; ++i) {
    const Result<int> outcome = co_await NoteAndMaybeWait(stack, parking, true).Outcome();
    if (!outcome.ok()) ++failures;
  }
  co_return failures;
}

constexpr int64_t kManyAwaits = 1'000'000;
constexpr size_t kConstantStack = 16 * 1024;  // far less than a million of anything

// Given a loop of a million awaits. When the awaited tasks end at once. Expect constant stack.
TEST(TaskStack, LoopOverTasksThatEndAtOnce_UsesConstantStack) {
  StackUse stack;
  EXPECT_EQ(*Finish(LoopOfAwaits(stack, nullptr, kManyAwaits)), kManyAwaits);
  EXPECT_LT(stack.bytes(), kConstantStack);
}

// As above, but when each awaited task waits first. Expect constant stack.
TEST(TaskStack, LoopOverTasksThatWait_UsesConstantStack) {
  StackUse stack;
  Parking parking;
  Task<int64_t> task = LoopOfAwaits(stack, &parking, kManyAwaits);
  task.Start();
  while (!task.done()) parking.Resume();
  EXPECT_EQ(*task.TakeResult(), kManyAwaits);
  EXPECT_LT(stack.bytes(), kConstantStack);
}

// Given loops over tasks that fail, at once or after waiting. Expect constant stack there too.
TEST(TaskStack, LoopOverTasksThatFail_UsesConstantStack) {
  constexpr int64_t kRounds = 100'000;
  for (const bool waits : {false, true}) {
    StackUse stack;
    Parking parking;
    Task<int64_t> task = LoopOfOutcomes(stack, waits ? &parking : nullptr, kRounds);
    task.Start();
    while (!task.done()) parking.Resume();
    EXPECT_EQ(*task.TakeResult(), kRounds);
    EXPECT_LT(stack.bytes(), kConstantStack);
  }
}

Task<int64_t> Nested(int64_t depth, Parking* parking, Ending ending) {
  if (depth == 0) {
    if (parking != nullptr) co_await parking->Wait();
    if (ending == Ending::kError) co_return Damaged();
    co_return 0;
  }
  co_return 1 + co_await Nested(depth - 1, parking, ending);
}

constexpr int64_t kDeep = 10'000;

// Given 10,000 tasks, each awaiting the next. When the innermost ends or fails, at once or after waiting.
// Expect the value or the error at the top: the stack of a thread is enough for the way down and the way up.
TEST(TaskStack, DeepChains_FitTheStackOfAThread) {
  for (const Ending ending : {Ending::kValue, Ending::kError}) {
    for (const bool waits : {false, true}) {
      Parking parking;
      Task<int64_t> task = Nested(kDeep, waits ? &parking : nullptr, ending);
      task.Start();
      if (waits) parking.Resume();
      ASSERT_TRUE(task.done());
      const Result<int64_t> result = task.TakeResult();
      ASSERT_EQ(result.ok(), ending == Ending::kValue);
      if (result.ok()) {
        EXPECT_EQ(*result, kDeep);
      } else {
        EXPECT_EQ(result.error().message(), "damaged");
      }
    }
  }
}

// Given 10,000 tasks, the innermost of which waits. When the outermost is destroyed. Expect no overflow.
TEST(TaskStack, DeepChains_CanBeAbandoned) {
  Parking parking;
  Task<int64_t> task = Nested(kDeep, &parking, Ending::kValue);
  task.Start();
  EXPECT_TRUE(parking.occupied());
}

// ---- memory

// Given loops that have run once, so that their frames are cached. When they run again. Expect no allocation.
TEST(TaskMemory, SteadyState_AllocatesNothing) {
  StackUse stack;
  Parking parking;
  const auto run = [&] {
    EXPECT_TRUE(Finish(LoopOfAwaits(stack, nullptr, 1000)).ok());
    Task<int64_t> task = LoopOfAwaits(stack, &parking, 1000);
    task.Start();
    while (!task.done()) parking.Resume();
    EXPECT_TRUE(Finish(Nested(10, nullptr, Ending::kValue)).ok());
  };
  run();
  const uint64_t before = HeapAllocations();
  run();
  const uint64_t after = HeapAllocations();
  if (!kHeapIsCounted) GTEST_SKIP() << "the sanitizer owns operator new: allocations are not counted";
  EXPECT_EQ(after, before);
}

// Given a task whose frame is larger than any that is cached. Expect it to work all the same.
Task<int> HugeFrame(Parking& parking) {
  std::array<char, 64 * 1024> large{};
  large[large.size() - 1] = 5;
  co_await parking.Wait();
  co_return large[large.size() - 1];
}
TEST(TaskMemory, FramesTooLargeForTheCache_Work) {
  Parking parking;
  Task<int> task = HugeFrame(parking);
  task.Start();
  parking.Resume();
  EXPECT_EQ(*task.TakeResult(), 5);
}

struct alignas(64) CacheLine {
  std::array<uint64_t, 8> words{};
};
// Hidden from the optimizer, which knows how an address should be aligned and would not look.
[[gnu::noipa]] uintptr_t AddressOf(const void* object) { return reinterpret_cast<uintptr_t>(object); }
Task<uintptr_t> AddressOfALine(Parking& parking) {
  const CacheLine line;
  co_await parking.Wait();
  co_return AddressOf(&line);
}

// Given locals that are aligned to a cache line, as layouts of far memory are. When several frames exist at
// once, wherever the heap puts them. Expect every one to keep the alignment.
TEST(TaskMemory, FramesKeepTheAlignmentOfCacheLines) {
  std::vector<Task<uintptr_t>> tasks;
  std::vector<std::unique_ptr<char[]>> shift_the_heap;
  for (size_t i = 0; i < 20; ++i) {
    Parking parking;
    tasks.push_back(AddressOfALine(parking));
    shift_the_heap.push_back(std::make_unique<char[]>(16 * i + 1));
    tasks.back().Start();
    parking.Resume();
    EXPECT_EQ(*tasks.back().TakeResult() % alignof(CacheLine), 0u) << "frame " << i;
  }
}

}  // namespace
}  // namespace farside
