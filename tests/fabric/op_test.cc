#include "fabric/op.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/run.h"
#include "tests/support/heap_count.h"

namespace farside::fabric {
namespace {

// A client whose trips end when and how the test says. READs give bytes that tell their offset; atomics find
// the word `old_word`.
class ScriptedClient final : public Client {
 public:
  ScriptedClient() : Client(ClientId{1}) {}

  std::span<const uint64_t> region_bytes() const override { return regions_; }
  Nanos Now() const override { return now; }

  bool Start(Trip& trip) override {
    if (fail_at_start) {
      trip.Fail(Lost());
      return true;
    }
    if (!waits) {
      Answer(trip);
      trip.Succeed();
      return true;
    }
    in_flight.push_back(&trip);
    return false;
  }
  void Abandon(Trip& trip) noexcept override {
    ++abandoned_trips;
    std::erase(in_flight, &trip);
  }
  bool orders_reads() const override { return true; }
  bool stores_back_failed_cas() const override { return false; }
  bool HasUnawaited() const override { return false; }
  uint64_t trips_posted() const override { return 0; }
  bool HasUnawaitedOfFirst(uint64_t /*posted*/) const override { return false; }
  void Detach(Order, std::span<const Verb> verbs) override { detached.assign(verbs.begin(), verbs.end()); }
  void Start(Timer& timer) override { timers.push_back(&timer); }
  void Abandon(Timer& timer) noexcept override {
    ++abandoned_timers;
    std::erase(timers, &timer);
  }
  bool Poll() override {
    if (!in_flight.empty()) {
      Trip& trip = *in_flight.front();
      in_flight.pop_front();
      Answer(trip);
      trip.Succeed();
      trip.Resume();
      return true;
    }
    if (!timers.empty()) {
      Timer& timer = *timers.front();
      timers.pop_front();
      now = std::max(now, timer.due);
      timer.waiter.resume();
      return true;
    }
    return false;
  }
  void FailNext() {
    Trip& trip = *in_flight.front();
    in_flight.pop_front();
    trip.Fail(Lost());
    trip.Resume();
  }

  static Error Lost() { return Error(ErrorCode::kUnavailable, "lost"); }

  bool waits = false;
  bool fail_at_start = false;
  uint64_t old_word = 0;
  Nanos now{0};
  std::deque<Trip*> in_flight;
  std::deque<Timer*> timers;
  std::vector<Verb> detached;
  std::vector<std::byte> written;  // the payload of the last WRITE or request
  int abandoned_trips = 0;
  int abandoned_timers = 0;

 private:
  void Answer(Trip& trip) {
    for (Verb& verb : trip.verbs) {
      if (verb.kind == VerbKind::kRead) {
        std::memset(verb.into, static_cast<int>(verb.at.offset & 0xff), verb.size);
      } else if (IsAtomic(verb.kind)) {
        verb.old = old_word;
      } else if (verb.size > 0) {
        written.assign(verb.from, verb.from + verb.size);
      }
      if (verb.kind == VerbKind::kCall) {
        *verb.reply = "reply to " + std::string(reinterpret_cast<const char*>(verb.from), verb.size);
      }
    }
  }

  std::vector<uint64_t> regions_ = {4096, 4096, 4096};
};

FarAddr At(uint64_t offset, uint16_t node = 0) { return FarAddr(static_cast<NodeId>(node), offset); }

using SmallBlock = std::array<std::byte, 24>;
using LargeBlock = std::array<std::byte, 1000>;

// ---- counting

Task<Done> OneOfEach(Client& client, OpKind kind, std::optional<OpOutcome> outcome) {
  Op op(client, OpKind::kSearch);
  const SmallBlock block{};
  co_await op.InOrder(Cas(At(0), 0, 1), Read<uint64_t>(At(8)));                             // index
  co_await op.InOrder(ForBlock(Read<SmallBlock>(At(64))));                                  // block
  co_await op.InOrder(Read<uint64_t>(At(8)), ForBlock(Read<SmallBlock>(At(64))));           // both
  co_await op.InOrder(ForMaintenance(WriteObject(At(128), block)));                         // maintenance
  co_await op.InOrder(Write(At(128), block), ForMaintenance(WriteObject(At(192), block)));  // not only
  if (outcome.has_value()) op.End(kind, *outcome);
  co_return Done{};
}

// Given an operation with index, block and maintenance trips. Expect index trips, end-to-end trips and
// maintenance trips apart; a trip with two purposes is one trip of each figure that it belongs to.
TEST(OpCounters, IndexBlockAndMaintenanceTrips_AreKeptApart) {
  ScriptedClient client;
  ASSERT_TRUE(fabric::Run(client, OneOfEach(client, OpKind::kSearch, OpOutcome::kDone)).ok());
  const OpTally& tally = client.counters().at(OpKind::kSearch, OpOutcome::kDone);
  EXPECT_EQ(tally.operations, 1u);
  EXPECT_EQ(tally.index_trips, 3u);
  EXPECT_EQ(tally.end_to_end_trips, 4u);
  EXPECT_EQ(tally.maintenance_trips, 1u);
  EXPECT_EQ(tally.depth, 4u);
  EXPECT_EQ(tally.detached_trips, 0u);
  EXPECT_EQ(tally.Verbs(), 8u);
}

// Given the same operation. Expect verbs and bytes by purpose; an atomic moves 8 bytes each way.
TEST(OpCounters, VerbsAndBytes_GoByPurpose) {
  ScriptedClient client;
  ASSERT_TRUE(fabric::Run(client, OneOfEach(client, OpKind::kSearch, OpOutcome::kDone)).ok());
  const OpTally total = client.counters().Total();
  const VerbTally& index = total.by_purpose[static_cast<size_t>(Purpose::kIndex)];
  const VerbTally& block = total.by_purpose[static_cast<size_t>(Purpose::kBlock)];
  const VerbTally& maintenance = total.by_purpose[static_cast<size_t>(Purpose::kMaintenance)];
  EXPECT_EQ(index.verbs[static_cast<size_t>(VerbKind::kCas)], 1u);
  EXPECT_EQ(index.verbs[static_cast<size_t>(VerbKind::kRead)], 2u);
  EXPECT_EQ(index.verbs[static_cast<size_t>(VerbKind::kWrite)], 1u);
  EXPECT_EQ(index.bytes_read, 8u + 8u + 8u);
  EXPECT_EQ(index.bytes_written, 8u + 24u);
  EXPECT_EQ(block.verbs[static_cast<size_t>(VerbKind::kRead)], 2u);
  EXPECT_EQ(block.bytes_read, 48u);
  EXPECT_EQ(block.bytes_written, 0u);
  EXPECT_EQ(maintenance.verbs[static_cast<size_t>(VerbKind::kWrite)], 2u);
  EXPECT_EQ(maintenance.bytes_written, 48u);
}

// Given operations that end as something else than they began, and one that never says how it ended. Expect
// each under its final kind and outcome; the silent one has failed, as what it began as.
TEST(OpCounters, OperationsCountAsWhatTheyTurnedOutToBe) {
  ScriptedClient client;
  ASSERT_TRUE(fabric::Run(client, OneOfEach(client, OpKind::kInsert, OpOutcome::kDone)).ok());
  ASSERT_TRUE(fabric::Run(client, OneOfEach(client, OpKind::kUpdate, OpOutcome::kRefused)).ok());
  ASSERT_TRUE(fabric::Run(client, OneOfEach(client, OpKind::kUpdate, std::nullopt)).ok());
  EXPECT_EQ(client.counters().at(OpKind::kInsert, OpOutcome::kDone).operations, 1u);
  EXPECT_EQ(client.counters().at(OpKind::kUpdate, OpOutcome::kRefused).operations, 1u);
  EXPECT_EQ(client.counters().at(OpKind::kSearch, OpOutcome::kFailed).operations, 1u);
  EXPECT_EQ(client.counters().Total().operations, 3u);

  Counters merged = client.counters();
  merged.Add(client.counters());
  EXPECT_EQ(merged.Total().operations, 6u);
  EXPECT_EQ(merged.Total().end_to_end_trips, 24u);
}

Task<Done> Atomics(Client& client) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Cas(At(0), 7, 1), Cas(At(8), 8, 1), Faa(At(16), 1));
  const uint64_t old = co_await op.InOrder(ForMaintenance(MaskedCas(At(0), 0, 0xf8, 0x0f, 1, 1)));
  Batch batch(op, Order::kInOrder);
  batch.Add(Cas(At(0), 9, 1));
  const size_t second = batch.Add(Cas(At(8), 7, 1));
  co_await batch;
  if (old != 7 || batch.Old(second) != 7) co_return Error(ErrorCode::kCorrupt, "wrong answers");
  op.End(OpKind::kUpdate, OpOutcome::kDone);
  co_return Done{};
}

// Given words that hold 7. When plain and masked CAS expect 7 or something else. Expect the failed ones
// counted by purpose, FAA never.
TEST(OpCounters, FailedCas_AreCounted) {
  ScriptedClient client;
  client.old_word = 7;
  ASSERT_TRUE(fabric::Run(client, Atomics(client)).ok());
  const OpTally& tally = client.counters().at(OpKind::kUpdate, OpOutcome::kDone);
  EXPECT_EQ(tally.by_purpose[static_cast<size_t>(Purpose::kIndex)].failed_cas, 2u);
  EXPECT_EQ(tally.by_purpose[static_cast<size_t>(Purpose::kMaintenance)].failed_cas, 1u);
}

Task<Done> DetachesAndRetries(Client& client) {
  Op op(client, OpKind::kDelete);
  const SmallBlock block{};
  op.Detach(Order::kInOrder, Write(At(0), block), Fenced(Cas(At(64), 1, 0)));
  op.CountRetry();
  op.CountRetry();
  op.End(OpKind::kDelete, OpOutcome::kDone);
  co_return Done{};
}

// Given verbs that no coroutine waits for. Expect them counted as detached trips with their verbs and bytes,
// but not as trips that the operation took; and retries counted.
TEST(OpCounters, DetachedTrips_AreKeptApart) {
  ScriptedClient client;
  ASSERT_TRUE(fabric::Run(client, DetachesAndRetries(client)).ok());
  const OpTally& tally = client.counters().at(OpKind::kDelete, OpOutcome::kDone);
  EXPECT_EQ(tally.detached_trips, 2u);  // the fence costs one
  EXPECT_EQ(tally.index_trips, 0u);
  EXPECT_EQ(tally.end_to_end_trips, 0u);
  EXPECT_EQ(tally.depth, 0u);
  EXPECT_EQ(tally.Verbs(), 2u);
  EXPECT_EQ(tally.retries, 2u);
  ASSERT_EQ(client.detached.size(), 2u);
  EXPECT_EQ(client.detached[1].expect, 1u);
}

Task<Done> ThreeNodesAtOnce(Client& client) {
  Op op(client, OpKind::kScan);
  co_await op.Together(Read<uint64_t>(At(0, 0)), Read<uint64_t>(At(0, 1)), Read<uint64_t>(At(0, 2)));
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return Done{};
}

// Given one trip to three nodes. Expect three trips of depth one.
TEST(OpCounters, NodesAtOnce_CountOnceInDepth) {
  ScriptedClient client;
  ASSERT_TRUE(fabric::Run(client, ThreeNodesAtOnce(client)).ok());
  const OpTally& tally = client.counters().at(OpKind::kScan, OpOutcome::kDone);
  EXPECT_EQ(tally.index_trips, 3u);
  EXPECT_EQ(tally.end_to_end_trips, 3u);
  EXPECT_EQ(tally.depth, 1u);
}

Task<Done> Fences(Client& client, ClientId victim) {
  Op op(client, OpKind::kMaintenance);
  co_await FenceEverywhere(op, victim);
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

// Given three nodes. When a client is fenced everywhere. Expect one FENCE per node, as maintenance.
TEST(FenceEverywhere, FencesEveryNodeInOneTrip) {
  ScriptedClient client;
  client.waits = true;
  Task<Done> task = Fences(client, ClientId{9});
  task.Start();
  ASSERT_EQ(client.in_flight.size(), 1u);
  const std::span<const Verb> verbs = client.in_flight.front()->verbs;
  ASSERT_EQ(verbs.size(), 3u);
  for (uint16_t node = 0; node < 3; ++node) {
    EXPECT_EQ(verbs[node].kind, VerbKind::kFence);
    EXPECT_EQ(Index(verbs[node].at.node), node);
    EXPECT_EQ(verbs[node].desired, 9u);
  }
  client.Poll();
  EXPECT_TRUE(task.done());
  EXPECT_EQ(client.counters().Total().maintenance_trips, 3u);
  EXPECT_EQ(client.counters().Total().end_to_end_trips, 0u);
}

// ---- what g++ 12 has to keep alive while a trip is in flight; AddressSanitizer watches

Task<uint64_t> TemporariesInTheAwaitedExpression(Client& client) {
  Op op(client, OpKind::kSearch);
  std::array<std::byte, 8> buffer{};
  // Typed verbs by value, one of them large, one wrapped twice, one pointing at a temporary number.
  auto [old, number, large, done, written] = co_await op.InOrder(
      Cas(At(0), 0, 1), Fenced(ForBlock(Read<uint64_t>(At(0x11)))), Read<LargeBlock>(At(0x22)),
      Read(At(0x33), buffer), WriteObject(At(64), uint64_t{0x5566}));
  static_cast<void>(done);
  static_cast<void>(written);
  const bool all_there = old == 7 && number == 0x1111111111111111 && large.back() == std::byte{0x22} &&
                         buffer[7] == std::byte{0x33};
  co_return all_there ? number : 0;
}

// Given verbs that are temporaries of the awaited expression, and answers taken apart. When the trip ends at
// once or later. Expect the answers, and that the backend could read and write what the verbs point at.
TEST(AwaitedTrip, KeepsItsTemporariesAlive) {
  for (const bool waits : {false, true}) {
    ScriptedClient client;
    client.waits = waits;
    client.old_word = 7;
    const Result<uint64_t> result = fabric::Run(client, TemporariesInTheAwaitedExpression(client));
    EXPECT_EQ(*result, 0x1111111111111111u);
    uint64_t written = 0;
    ASSERT_EQ(client.written.size(), sizeof written);
    std::memcpy(&written, client.written.data(), sizeof written);
    EXPECT_EQ(written, 0x5566u);
  }
}

Task<std::string> OutcomesOfTemporaries(Client& client) {
  Op op(client, OpKind::kSearch);
  const Result<uint64_t> number = co_await op.InOrder(Read<uint64_t>(At(0x44))).Outcome();
  const Result<std::tuple<uint64_t, LargeBlock>> both =
      co_await op.Together(Cas(At(0), 1, 2), Read<LargeBlock>(At(0x55))).Outcome();
  if (!number.ok() || !both.ok()) co_return number.ok() ? both.error() : number.error();
  co_return std::to_string(*number & 0xff) + " " +
      std::to_string(std::to_integer<int>(std::get<1>(*both)[999]));
}

// Given `.Outcome()` of trips that are temporaries. When they end at once or later, well or badly. Expect the
// answers or the error.
TEST(AwaitedTrip, OutcomeOfATemporaryTrip_KeepsTheTripAlive) {
  for (const bool waits : {false, true}) {
    ScriptedClient client;
    client.waits = waits;
    EXPECT_EQ(*fabric::Run(client, OutcomesOfTemporaries(client)), "68 85");
  }
  ScriptedClient failing;
  failing.fail_at_start = true;
  EXPECT_EQ(fabric::Run(failing, OutcomesOfTemporaries(failing)).error().message(), "lost");

  ScriptedClient failing_later;
  failing_later.waits = true;
  Task<std::string> task = OutcomesOfTemporaries(failing_later);
  task.Start();
  failing_later.FailNext();
  failing_later.FailNext();
  EXPECT_EQ(task.TakeResult().error().message(), "lost");
}

Task<std::string> CallWithATemporaryRequest(Client& client, std::string suffix) {
  Op op(client, OpKind::kMaintenance);
  std::string reply =
      co_await op.Call(NodeId{0}, CallId(1, 2), "a request too long for the inside of a string: " + suffix);
  co_return reply;
}

// Given a request that is a temporary string. When the Call is answered later. Expect that it was still
// there.
TEST(AwaitedTrip, TemporaryRequestOfACall_LivesUntilTheAnswer) {
  for (const bool waits : {false, true}) {
    ScriptedClient client;
    client.waits = waits;
    EXPECT_EQ(*fabric::Run(client, CallWithATemporaryRequest(client, "x")),
              "reply to a request too long for the inside of a string: x");
  }
}

Task<uint64_t> ReadNumber(Client& client, uint64_t offset) {
  Op op(client, OpKind::kSearch);
  const uint64_t number = co_await op.InOrder(Read<uint64_t>(At(offset)));
  op.End(OpKind::kSearch, OpOutcome::kDone);
  co_return number;
}
Task<uint64_t> Sum(Client& client) {
  const uint64_t first = co_await ReadNumber(client, 1);
  const uint64_t second = co_await ReadNumber(client, 2);
  co_return first + second;
}

// Given a chain of tasks whose trip is in flight. When the trip fails. Expect the error at the top, a failed
// operation, and no trip abandoned: it had ended.
TEST(AwaitedTrip, Failing_EndsTheChainOfTasks) {
  ScriptedClient client;
  client.waits = true;
  {
    Task<uint64_t> task = Sum(client);
    task.Start();
    client.Poll();
    client.FailNext();
    ASSERT_TRUE(task.done());
    EXPECT_EQ(task.TakeResult().error().message(), "lost");
  }
  EXPECT_EQ(client.abandoned_trips, 0);
  EXPECT_EQ(client.counters().at(OpKind::kSearch, OpOutcome::kDone).operations, 1u);
  EXPECT_EQ(client.counters().at(OpKind::kSearch, OpOutcome::kFailed).operations, 1u);
}

// Given a trip in flight. When the task that waits for it is destroyed. Expect that the client is told, once,
// and that a trip that has ended, well or badly, is not abandoned.
TEST(AwaitedTrip, DestroyedWhileInFlight_IsAbandonedOnce) {
  ScriptedClient client;
  client.waits = true;
  {
    Task<uint64_t> task = Sum(client);
    task.Start();
    client.Poll();  // the first has ended, the second is in flight
  }
  EXPECT_EQ(client.abandoned_trips, 1);
  EXPECT_TRUE(client.in_flight.empty());

  client.waits = false;
  ASSERT_TRUE(fabric::Run(client, Sum(client)).ok());
  client.fail_at_start = true;
  ASSERT_FALSE(fabric::Run(client, Sum(client)).ok());
  EXPECT_EQ(client.abandoned_trips, 1);
}

// Given a trip that was built but never awaited. Expect that it is neither posted nor abandoned.
TEST(AwaitedTrip, NeverAwaited_IsNeverPosted) {
  ScriptedClient client;
  client.waits = true;
  {
    Op op(client, OpKind::kSearch);
    [[maybe_unused]] auto trip = op.InOrder(Read<uint64_t>(At(0)));
  }
  EXPECT_TRUE(client.in_flight.empty());
  EXPECT_EQ(client.abandoned_trips, 0);
}

template <class SomeBatch>
Task<Done> EmptyBatch(Client& client) {
  Op op(client, OpKind::kMaintenance);
  SomeBatch batch(op, Order::kTogether);
  co_await batch;
  co_return Done{};
}

// Given a batch without verbs. Expect no trip.
TEST(Batch, WithoutVerbs_IsNoTrip) {
  ScriptedClient client;
  client.waits = true;
  EXPECT_TRUE(fabric::Run(client, EmptyBatch<Batch>(client)).ok());
  EXPECT_TRUE(fabric::Run(client, EmptyBatch<SmallBatch<1>>(client)).ok());
  EXPECT_EQ(client.counters().Total().end_to_end_trips, 0u);
}

Task<uint64_t> SmallBatchOf(Client& client, size_t verbs) {
  Op op(client, OpKind::kMaintenance);
  SmallBatch<4> batch(op, Order::kInOrder);
  for (size_t i = 0; i < verbs; ++i) batch.Add(Cas(At(8 * i), 9, 1));
  co_await batch;
  uint64_t sum = 0;
  for (size_t i = 0; i < batch.size(); ++i) sum += batch.Old(i);
  co_return sum;
}

// Given words that hold 7. When a batch with room for four verbs has three, and when it is full. Expect one
// trip with just these, all of them answered, and nothing from the heap.
TEST(Batch, ASmallOne_PostsWhatWasAdded) {
  ScriptedClient client;
  client.old_word = 7;
  ASSERT_TRUE(fabric::Run(client, SmallBatchOf(client, 1)).ok());  // its frame is kept from now on
  for (const size_t verbs : {3, 4}) {
    const OpTally before = client.counters().Total();
    const uint64_t allocations = HeapAllocations();
    const Result<uint64_t> sum = fabric::Run(client, SmallBatchOf(client, verbs));
    if (kHeapIsCounted) {
      EXPECT_EQ(HeapAllocations(), allocations);
    }
    ASSERT_TRUE(sum.ok());
    EXPECT_EQ(*sum, 7 * verbs);
    const OpTally after = client.counters().Total();
    EXPECT_EQ(after.end_to_end_trips - before.end_to_end_trips, 1u);
    const auto failed = [](const OpTally& tally) {
      return tally.by_purpose[static_cast<size_t>(Purpose::kIndex)].failed_cas;
    };
    EXPECT_EQ(failed(after) - failed(before), verbs);
  }
}

template <class TypedVerb>
concept FitsIntoABatch = requires(Batch batch, TypedVerb typed) {
  batch.Add(typed);
};

// A batch keeps the plain verbs only, so a READ into a typed verb would be a READ into memory that is gone.
static_assert(FitsIntoABatch<ReadIntoVerb> && FitsIntoABatch<WriteVerb> && FitsIntoABatch<AtomicVerb>);
static_assert(!FitsIntoABatch<ReadVerb<uint64_t>> && !FitsIntoABatch<CallVerb>);

Task<int64_t> PauseFor(Client& client, Nanos duration) {
  Op op(client, OpKind::kMaintenance);
  co_await op.Pause(duration);
  co_return client.Now().count();
}

// Given a pause. Expect that it is due `duration` after its start; that a destroyed waiter is abandoned; that
// one that has been resumed is not.
TEST(Pause, IsATimerOfTheClient) {
  ScriptedClient client;
  client.now = Nanos{100};
  EXPECT_EQ(*fabric::Run(client, PauseFor(client, Nanos{50})), 150);
  EXPECT_EQ(client.abandoned_timers, 0);
  {
    Task<int64_t> task = PauseFor(client, Nanos{50});
    task.Start();
    ASSERT_EQ(client.timers.size(), 1u);
    EXPECT_EQ(client.timers.front()->due, Nanos{200});
  }
  EXPECT_EQ(client.abandoned_timers, 1);
  EXPECT_TRUE(client.timers.empty());
}

Task<Done> WaitForNothing() {
  co_await std::suspend_always{};
  co_return Done{};
}

// Given a task that waits for something that no client will bring. Expect an error, not a hang.
TEST(RunTask, ThatWaitsForNothingInFlight_IsAnError) {
  ScriptedClient client;
  EXPECT_EQ(fabric::Run(client, WaitForNothing()).error().code(), ErrorCode::kUnavailable);
  std::vector<Task<Done>> tasks;
  tasks.push_back(WaitForNothing());
  EXPECT_FALSE(RunAll<Done>(client, tasks).ok());
}

// Given several tasks. When they run at once. Expect that their trips were in flight together, that all
// results are there, and that the client's concurrency is what it was before.
TEST(RunAllTasks, OverlapsTheirTrips) {
  ScriptedClient client;
  client.waits = true;
  std::vector<Task<uint64_t>> tasks;
  for (int i = 0; i < 5; ++i) tasks.push_back(Sum(client));
  ASSERT_TRUE(RunAll<uint64_t>(client, tasks).ok());
  for (Task<uint64_t>& task : tasks) EXPECT_EQ(*task.TakeResult(), 0x0303030303030303u);
  EXPECT_EQ(client.concurrency(), 1u);
}

}  // namespace
}  // namespace farside::fabric
