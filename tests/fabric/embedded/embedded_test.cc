#include "fabric/embedded/embedded.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/random.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "tests/support/heap_count.h"

namespace farside::fabric::embedded {
namespace {

constexpr uint64_t kRegionBytes = 64 * 1024;

FarAddr At(uint64_t offset, uint16_t node = 0) { return FarAddr(static_cast<NodeId>(node), offset); }

std::unique_ptr<EmbeddedFabric> OpenFabric(std::vector<uint64_t> region_bytes = {kRegionBytes},
                                           const Clock* clock = nullptr) {
  return std::move(*EmbeddedFabric::Open(Options{.region_bytes = std::move(region_bytes), .clock = clock}));
}

Task<uint64_t> ReadWord(Client& client, FarAddr at) {
  Op op(client, OpKind::kSearch);
  const uint64_t word = co_await op.InOrder(Read<uint64_t>(at));
  co_return word;
}
Task<Done> WriteWord(Client& client, FarAddr at, uint64_t word) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(WriteObject(at, word));
  co_return Done{};
}
Task<uint64_t> AddToWord(Client& client, FarAddr at, uint64_t delta) {
  Op op(client, OpKind::kUpdate);
  const uint64_t old = co_await op.InOrder(Faa(at, delta));
  co_return old;
}

// ---- opening

// Given sizes and numbers of regions that cannot work. Expect errors that say what to choose, and no crash.
TEST(EmbeddedOpen, RefusesImpossibleRegions) {
  for (const std::vector<uint64_t>& regions :
       {std::vector<uint64_t>{}, {0}, {kRegionBytes, 0}, {100}, {64, 65}, std::vector<uint64_t>(65537, 64)}) {
    const auto fabric = EmbeddedFabric::Open(Options{.region_bytes = regions});
    ASSERT_FALSE(fabric.ok()) << regions.size();
    EXPECT_EQ(fabric.error().code(), ErrorCode::kInvalidArgument);
  }
  const auto fabric = EmbeddedFabric::Open(Options{.region_bytes = {uint64_t{1} << 60}});
  ASSERT_FALSE(fabric.ok());
  EXPECT_EQ(fabric.error().code(), ErrorCode::kOutOfMemory);
}

// Given a fabric of three nodes. Expect that it says so, that clients say so, that regions are zero, and that
// every client has another id, also after one has departed.
TEST(EmbeddedOpen, GivesZeroedRegionsAndFreshClientIds) {
  const auto fabric = OpenFabric({64, 128, kRegionBytes});
  EXPECT_EQ(fabric->name(), "embedded");
  ASSERT_EQ(fabric->region_bytes().size(), 3u);
  EXPECT_EQ(fabric->region_bytes()[1], 128u);
  EXPECT_EQ(fabric->memory(NodeId{2}).bytes(), kRegionBytes);

  std::vector<ClientId> ids;
  for (int i = 0; i < 10; ++i) {
    const auto client = std::move(*fabric->Connect());
    EXPECT_EQ(client->region_bytes().size(), 3u);
    EXPECT_EQ(*fabric::Run(*client, ReadWord(*client, At(120, 1))), 0u);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), client->id()), 0);
    EXPECT_NE(client->id(), ClientId::kNone);
    ids.push_back(client->id());
  }
}

// ---- trips

Task<std::vector<uint64_t>> Mixture(Client& client, uint64_t task) {
  Op op(client, OpKind::kUpdate);
  std::vector<uint64_t> answers;
  Random random(task);
  const FarAddr own = At(4096 + 1024 * task);
  for (int i = 0; i < 50; ++i) {
    const FarAddr line = own + 64 * random.Below(16);
    std::array<uint64_t, 8> payload;
    for (uint64_t& word : payload) word = random.Next();
    const uint64_t bytes = random.Between(1, 64);
    auto [written, read] = co_await op.InOrder(Write(line, std::as_bytes(std::span(payload)).first(bytes)),
                                               Read<std::array<uint64_t, 8>>(line));
    static_cast<void>(written);
    answers.insert(answers.end(), read.begin(), read.end());
    const uint64_t guess = random.Chance(1, 2) ? read[0] : 0;
    auto [old, shared] = co_await op.InOrder(Cas(line, guess, random.Next()), Faa(At(8 * (task % 4)), 1));
    answers.push_back(old);
    static_cast<void>(shared);  // how many were before depends on which came first
    const uint64_t masked = co_await op.InOrder(MaskedCas(line + 8, 0, read[1], 0xff, random.Next(), 0xffff));
    answers.push_back(masked);
  }
  co_return answers;
}

struct MixtureResult {
  std::vector<std::vector<uint64_t>> answers;
  std::vector<uint64_t> memory;
};

MixtureResult RunMixture(size_t at_once) {
  constexpr size_t kTasks = 32;
  MixtureResult result;
  const auto fabric = OpenFabric();
  const auto client = std::move(*fabric->Connect());
  for (size_t first = 0; first < kTasks; first += at_once) {
    std::vector<Task<std::vector<uint64_t>>> tasks;
    for (size_t i = 0; i < at_once; ++i) tasks.push_back(Mixture(*client, first + i));
    EXPECT_TRUE(RunAll<std::vector<uint64_t>>(*client, tasks).ok());
    for (auto& task : tasks) result.answers.push_back(*task.TakeResult());
  }
  for (uint64_t offset = 0; offset < kRegionBytes; offset += 8) {
    result.memory.push_back(fabric->memory(NodeId{0}).Load(offset));
  }
  return result;
}

// Given 32 operations with all kinds of verbs, on lines of their own and on shared counters. When they run
// one after another, or 2 or 32 at once. Expect the same answers and the same memory.
TEST(EmbeddedTrips, OneAtATimeAndManyAtOnce_GiveTheSameResults) {
  const MixtureResult alone = RunMixture(1);
  for (const size_t at_once : {2, 32}) {
    const MixtureResult together = RunMixture(at_once);
    EXPECT_EQ(together.answers, alone.answers);
    EXPECT_EQ(together.memory, alone.memory);
  }
}

Task<Done> AtOnceOnTwoNodes(Client& client) {
  Op op(client, OpKind::kUpdate);
  const uint64_t number = 5;
  co_await op.Together(WriteObject(At(0, 0), number), Faa(At(8, 1), 7));
  auto [first, second] = co_await op.Together(Read<uint64_t>(At(0, 0)), Read<uint64_t>(At(8, 1)));
  if (first != 5 || second != 7) co_return Error(ErrorCode::kCorrupt, "wrong node");
  co_return Done{};
}

// Given two nodes. When one trip goes to both. Expect each verb at its own node.
TEST(EmbeddedTrips, ToSeveralNodesAtOnce_ReachTheirNodes) {
  const auto fabric = OpenFabric({64, 64});
  const auto client = std::move(*fabric->Connect());
  EXPECT_TRUE(fabric::Run(*client, AtOnceOnTwoNodes(*client)).ok());
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(8), 0u);
  EXPECT_EQ(fabric->memory(NodeId{1}).Load(0), 0u);
}

Task<Done> WriteThenReadOutside(Client& client) {
  Op op(client, OpKind::kUpdate);
  const uint64_t number = 5;
  co_await op.InOrder(WriteObject(At(0), number), Read<uint64_t>(At(kRegionBytes - 4)));
  co_return Done{};
}

// Given a trip whose second verb leaves the region. When it runs alone or among others. Expect kCorrupt, no
// effect of its first verb, and a client that goes on.
TEST(EmbeddedTrips, OutsideTheRegion_FailWithoutEffect) {
  for (const size_t concurrency : {1, 8}) {
    const auto fabric = OpenFabric();
    const auto client = std::move(*fabric->Connect());
    client->set_concurrency(concurrency);
    EXPECT_EQ(fabric::Run(*client, WriteThenReadOutside(*client)).error().code(), ErrorCode::kCorrupt);
    EXPECT_EQ(fabric::Run(*client, AddToWord(*client, At(kRegionBytes), 1)).error().code(),
              ErrorCode::kCorrupt);
    EXPECT_EQ(fabric::Run(*client, AddToWord(*client, At(4), 1)).error().code(), ErrorCode::kCorrupt);
    EXPECT_EQ(fabric::Run(*client, ReadWord(*client, At(0, 1))).error().code(), ErrorCode::kCorrupt);
    EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), 0u);
    EXPECT_TRUE(fabric::Run(*client, WriteWord(*client, At(0), 1)).ok());
    EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), 1u);
  }
}

// Given nothing in flight. Expect that Poll says so.
TEST(EmbeddedTrips, PollWithNothingInFlight_IsFalse) {
  const auto fabric = OpenFabric();
  const auto client = std::move(*fabric->Connect());
  EXPECT_FALSE(client->Poll());
  client->set_concurrency(2);
  Task<uint64_t> task = AddToWord(*client, At(0), 1);
  task.Start();
  EXPECT_FALSE(task.done());
  EXPECT_TRUE(client->Poll());
  EXPECT_TRUE(task.done());
  EXPECT_FALSE(client->Poll());
}

// ---- abandoning

// Given several trips in flight. When the task that waits for the first, a middle one, the last, or all is
// destroyed.
// Expect that only the others take effect.
TEST(EmbeddedAbandon, TripsOfDestroyedTasks_AreRemoved) {
  constexpr size_t kTasks = 5;
  for (unsigned abandoned = 0; abandoned < (1u << kTasks); ++abandoned) {
    const auto fabric = OpenFabric();
    const auto client = std::move(*fabric->Connect());
    client->set_concurrency(kTasks);
    std::vector<std::optional<Task<uint64_t>>> tasks;
    for (size_t i = 0; i < kTasks; ++i) {
      tasks.emplace_back(AddToWord(*client, At(8 * i), 1));
      tasks.back()->Start();
    }
    for (size_t i = 0; i < kTasks; ++i) {
      if ((abandoned >> i & 1) != 0) tasks[i].reset();
    }
    while (client->Poll()) continue;
    for (size_t i = 0; i < kTasks; ++i) {
      const bool gone = (abandoned >> i & 1) != 0;
      EXPECT_EQ(fabric->memory(NodeId{0}).Load(8 * i), gone ? 0u : 1u);
      if (!gone) {
        EXPECT_TRUE(tasks[i]->done());
      }
    }
  }
}

// Given a client on which tasks are started, destroyed and polled at random, up to hundreds at once. Expect
// that every task that was not destroyed ends, and that each took effect at most once.
TEST(EmbeddedAbandon, AtRandom_LosesNothingElse) {
  Random random(7);
  const auto fabric = OpenFabric();
  const auto client = std::move(*fabric->Connect());
  client->set_concurrency(1000);
  std::vector<Task<uint64_t>> live;
  uint64_t ended = 0;
  uint64_t destroyed = 0;
  constexpr uint64_t kStarted = 20'000;
  for (uint64_t started = 0; started < kStarted; ++started) {
    live.push_back(AddToWord(*client, At(0), 1));
    live.back().Start();
    if (random.Chance(1, 3)) {
      std::swap(live[random.Below(live.size())], live.back());
      destroyed += live.back().done() ? 0 : 1;
      ended += live.back().done() ? 1 : 0;
      live.pop_back();
    }
    if (random.Chance(1, 200)) client->Poll();
  }
  while (client->Poll()) continue;
  for (const Task<uint64_t>& task : live) {
    ASSERT_TRUE(task.done());
    ++ended;
  }
  EXPECT_EQ(ended + destroyed, kStarted);
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), ended);
}

Task<Done> DestroysAnother(Client& client, std::optional<Task<uint64_t>>& other) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Faa(At(0), 1));
  other.reset();
  co_await op.InOrder(Faa(At(0), 1));
  co_return Done{};
}

// Given a task that, when it goes on, destroys another one whose trip is in flight behind its own. Expect no
// harm.
TEST(EmbeddedAbandon, ByATaskThatPollHasJustResumed_IsSafe) {
  const auto fabric = OpenFabric();
  const auto client = std::move(*fabric->Connect());
  client->set_concurrency(2);
  std::optional<Task<uint64_t>> other;
  Task<Done> destroyer = DestroysAnother(*client, other);
  destroyer.Start();
  other.emplace(AddToWord(*client, At(8), 1));
  other->Start();
  while (client->Poll()) continue;
  EXPECT_TRUE(destroyer.done());
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), 2u);
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(8), 0u);
}

// ---- timers

Task<Done> PauseAndLog(Client& client, Nanos duration, std::vector<int>& log, int name) {
  Op op(client, OpKind::kMaintenance);
  co_await op.Pause(duration);
  log.push_back(name);
  co_return Done{};
}

// Given pauses of different lengths on a clock that stands still. When it is advanced. Expect them to end in
// the order in which they are due, those of equal length in the order of their start, and none early; Poll
// says that something is pending until all have ended.
TEST(EmbeddedTimers, EndInOrderWhenTheClockSaysSo) {
  ManualClock clock(Nanos{1000});
  const auto fabric = OpenFabric({64}, &clock);
  const auto client = std::move(*fabric->Connect());
  EXPECT_EQ(client->Now(), Nanos{1000});
  std::vector<int> log;
  std::vector<Task<Done>> tasks;
  const std::vector<int> durations = {30, 10, 20, 10, 30, 0};
  for (size_t i = 0; i < durations.size(); ++i) {
    tasks.push_back(PauseAndLog(*client, Nanos{durations[i]}, log, static_cast<int>(i)));
    tasks.back().Start();
  }
  EXPECT_TRUE(log.empty());
  EXPECT_TRUE(client->Poll());
  EXPECT_EQ(log, (std::vector<int>{5}));
  EXPECT_TRUE(client->Poll());
  clock.Advance(Nanos{9});
  EXPECT_TRUE(client->Poll());
  EXPECT_EQ(log.size(), 1u);
  clock.Advance(Nanos{1});
  EXPECT_TRUE(client->Poll());
  EXPECT_EQ(log, (std::vector<int>{5, 1, 3}));
  clock.Advance(Nanos{100});
  EXPECT_TRUE(client->Poll());
  EXPECT_EQ(log, (std::vector<int>{5, 1, 3, 2, 0, 4}));
  EXPECT_FALSE(client->Poll());
}

// Given pauses. When some of the tasks are destroyed first. Expect only the others to end.
TEST(EmbeddedTimers, OfDestroyedTasks_AreRemoved) {
  ManualClock clock;
  const auto fabric = OpenFabric({64}, &clock);
  const auto client = std::move(*fabric->Connect());
  std::vector<int> log;
  std::vector<std::optional<Task<Done>>> tasks;
  for (int i = 0; i < 6; ++i) {
    tasks.emplace_back(PauseAndLog(*client, Nanos{10 * (i % 3)}, log, i));
    tasks.back()->Start();
  }
  for (const size_t i : {0, 4, 5}) tasks[i].reset();
  clock.Advance(Nanos{100});
  while (client->Poll()) continue;
  EXPECT_EQ(log, (std::vector<int>{3, 1, 2}));
}

Task<uint64_t> PausesBetweenTrips(Client& client) {
  Op op(client, OpKind::kUpdate);
  uint64_t last = 0;
  for (int i = 0; i < 10; ++i) {
    last = co_await op.InOrder(Faa(At(0), 1));
    co_await op.Pause(Nanos{1000});
  }
  co_return last;
}

// Given the machine's clock. When operations pause between trips, one or many at once. Expect that running
// them waits until the pauses are over.
TEST(EmbeddedTimers, OnTheMachinesClock_AreWaitedFor) {
  const auto fabric = OpenFabric();
  const auto client = std::move(*fabric->Connect());
  EXPECT_EQ(*fabric::Run(*client, PausesBetweenTrips(*client)), 9u);
  std::vector<Task<uint64_t>> tasks;
  for (int i = 0; i < 8; ++i) tasks.push_back(PausesBetweenTrips(*client));
  EXPECT_TRUE(RunAll<uint64_t>(*client, tasks).ok());
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), 90u);
}

// ---- verbs that no coroutine waits for

// Given detached verbs. Expect that they take effect at once and from copies; that verbs outside the region
// are dropped; that nothing stays in flight.
TEST(EmbeddedDetach, TakesEffectAtOnce) {
  const auto fabric = OpenFabric();
  const auto client = std::move(*fabric->Connect());
  client->set_concurrency(4);
  {
    Op op(*client, OpKind::kUpdate);
    const uint64_t number = 77;
    op.Detach(Order::kInOrder, WriteObject(At(0), number), Cas(At(8), 0, 1));
    op.Detach(Order::kInOrder, Faa(At(16), 1), Faa(At(kRegionBytes), 1));
  }
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), 77u);
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(8), 1u);
  EXPECT_EQ(fabric->memory(NodeId{0}).Load(16), 0u);
  EXPECT_FALSE(client->Poll());
  EXPECT_FALSE(client->HasUnawaited());
  EXPECT_EQ(client->counters().Total().detached_trips, 2u);
}

// ---- calls

Task<std::string> CallNode(Client& client, NodeId node, CallId call, std::string request) {
  Op op(client, OpKind::kMaintenance);
  std::string reply = co_await op.Call(node, call, request);
  co_return reply;
}

constexpr CallId kStoreAndTell(1, 1);
constexpr CallId kFail(1, 2);

void SetHandlers(EmbeddedFabric& fabric) {
  fabric.calls().Set(kStoreAndTell, [](NodeMemory& memory, ClientId caller, std::string_view request) {
    memory.Store(0, memory.Load(0) + request.size());
    return Result<std::string>(std::string(request) + " for client " + std::to_string(Number(caller)));
  });
  fabric.calls().Set(kFail, [](NodeMemory&, ClientId, std::string_view) {
    return Result<std::string>(Error(ErrorCode::kOutOfMemory, "no chunk left"));
  });
}

// Given handlers. When they are called, alone or among other operations. Expect their reply or error, with
// the caller and the memory of the node that was asked; an operation without a handler is unsupported.
TEST(EmbeddedCall, IsAnsweredByTheNodeThatWasAsked) {
  for (const size_t concurrency : {1, 4}) {
    const auto fabric = OpenFabric({64, 64});
    SetHandlers(*fabric);
    const auto client = std::move(*fabric->Connect());
    client->set_concurrency(concurrency);
    EXPECT_EQ(*fabric::Run(*client, CallNode(*client, NodeId{1}, kStoreAndTell, "hello")),
              "hello for client " + std::to_string(Number(client->id())));
    EXPECT_EQ(fabric->memory(NodeId{0}).Load(0), 0u);
    EXPECT_EQ(fabric->memory(NodeId{1}).Load(0), 5u);
    EXPECT_EQ(fabric::Run(*client, CallNode(*client, NodeId{0}, kFail, "")).error().message(),
              "no chunk left");
    EXPECT_EQ(fabric::Run(*client, CallNode(*client, NodeId{0}, CallId(9, 9), "")).error().code(),
              ErrorCode::kUnsupported);
    EXPECT_TRUE(fabric::Run(*client, CallNode(*client, NodeId{1}, kStoreAndTell, "")).ok());
  }
}

// ---- memory

Task<Done> ManyTrips(Client& client, int trips) {
  Op op(client, OpKind::kUpdate);
  std::array<uint64_t, 16> payload{};
  for (int i = 0; i < trips; ++i) {
    const FarAddr at = At(64 * static_cast<uint64_t>(i % 512));
    switch (i % 4) {
      case 0: co_await op.InOrder(Write(at, std::as_bytes(std::span(payload)))); break;
      case 1: co_await op.InOrder(Faa(at, 1), Read<uint64_t>(at)); break;
      case 2: payload = co_await op.InOrder(Read<std::array<uint64_t, 16>>(at)); break;
      default: op.Detach(Order::kInOrder, Cas(at, 0, 1)); co_await op.Pause(Nanos{0});
    }
  }
  op.End(OpKind::kUpdate, OpOutcome::kDone);
  co_return Done{};
}

// Given operations that have run once. When 10,000 trips run again, one operation at a time or 32 at once,
// with pauses and detached verbs among them. Expect not a single allocation.
TEST(EmbeddedMemory, SteadyState_AllocatesNothing) {
  constexpr int kTrips = 10'000;
  const auto fabric = OpenFabric();
  const auto client = std::move(*fabric->Connect());
  for (const size_t at_once : {1, 32}) {
    std::vector<Task<Done>> tasks;
    tasks.reserve(at_once);
    const auto run = [&] {
      tasks.clear();
      for (size_t i = 0; i < at_once; ++i)
        tasks.push_back(ManyTrips(*client, kTrips / static_cast<int>(at_once)));
      return RunAll<Done>(*client, tasks).ok();
    };
    ASSERT_TRUE(run());
    const uint64_t before = HeapAllocations();
    const bool ran = run();
    const uint64_t after = HeapAllocations();
    EXPECT_TRUE(ran);
    EXPECT_EQ(after, before) << at_once << " at once";
  }
  if (!kHeapIsCounted) GTEST_SKIP() << "the sanitizer owns operator new: allocations are not counted";
}

}  // namespace
}  // namespace farside::fabric::embedded
