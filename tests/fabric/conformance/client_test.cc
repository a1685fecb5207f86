// "The client's side" of docs/memory-model.md, for every backend.
#include <time.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "fabric/op.h"
#include "tests/fabric/conformance/backend.h"
#include "tests/fabric/conformance/cite.h"

namespace farside::fabric::conformance {
namespace {

using namespace std::chrono_literals;

class FabricClient : public FabricTest {};
INSTANTIATE_TEST_SUITE_P(Backends, FabricClient, testing::ValuesIn(AllBackends()), NameOf);

using FourLines = std::array<uint64_t, 32>;

// ---- trips that no coroutine waits for

void DetachAll(Client& client) {
  Op op(client, OpKind::kUpdate);
  FourLines lines;
  lines.fill(1);
  op.Detach(Order::kInOrder, WriteObject(Line(0), lines), Faa(Line(4), 1));
  op.Detach(Order::kTogether, Faa(Line(4), 1), Cas(Line(5), 0, 1), Read<uint64_t>(Line(0)));
  lines.fill(9);  // was copied
}

// Given trips that no coroutine waits for, whose buffers are gone at once. Expect that they take effect.
const Cite kDetached("fabric/31",
                     "takes effect if its client stays connected; the bytes it writes were copied");
TEST_P(FabricClient, DetachedTripsTakeEffect) {
  InManyWorlds({1024}, [](World& world) {
    const auto client = world.Connect();
    DetachAll(*client);
    while (client->Poll()) continue;
    for (uint64_t line = 0; line < 4; ++line) EXPECT_EQ(ReadWord(*client, Line(line)), 1u);
    EXPECT_EQ(ReadWord(*client, Line(4)), 2u);
    EXPECT_EQ(ReadWord(*client, Line(5)), 1u);
  });
}

Task<Done> LongTrip(Client& client, std::span<std::byte> into) {
  Op op(client, OpKind::kUpdate);
  FourLines lines;
  lines.fill(1);
  co_await op.InOrder(WriteObject(Line(0), lines), Faa(Line(4), 1), Read(Line(0), into));
  co_return Done{};
}

// Given a task that is destroyed while its trip is in flight, and whose buffers are freed. Expect that
// nothing touches them (which the sanitizers watch), that what lands is whole in its lines, and that the
// client works.
const Cite kAbandoned("fabric/32",
                      "nothing touches it or its buffers, though its verbs may still take effect");
TEST_P(FabricClient, AbandonedTripsAreSafe) {
  InManyWorlds({1024}, [](World& world) {
    const auto client = world.Connect();
    {
      std::vector<std::byte> buffer(512, std::byte{7});
      Task<Done> task = LongTrip(*client, buffer);
      task.Start();
      const std::vector<std::byte> before = buffer;
      const bool done = task.done();
      { const Task<Done> dies = std::move(task); }
      while (client->Poll()) continue;
      EXPECT_TRUE(done || buffer == before);
    }
    for (uint64_t line = 0; line < 5; ++line) EXPECT_LE(ReadWord(*client, Line(line)), 1u);
    WriteWord(*client, Line(0), 3);
    EXPECT_EQ(ReadWord(*client, Line(0)), 3u);
  });
}

// Given detached and abandoned trips. Expect that the client says so until they have landed, and not longer.
const Cite kUnawaited("fabric/33", "says so while verbs are in flight that no coroutine waits for");
TEST_P(FabricClient, SaysWhetherUnawaitedVerbsAreInFlight) {
  InManyWorlds({1024}, [](World& world) {
    const auto client = world.Connect();
    EXPECT_FALSE(client->HasUnawaited());
    const auto other = world.Connect();
    DetachAll(*client);
    EXPECT_FALSE(other->HasUnawaited());
    bool more = true;
    while (client->HasUnawaited()) {
      ASSERT_TRUE(more);
      more = client->Poll();
    }
    EXPECT_EQ(ReadWord(*other, Line(4)), 2u);
    EXPECT_EQ(ReadWord(*other, Line(5)), 1u);

    std::vector<std::byte> buffer(512);
    {
      Task<Done> task = LongTrip(*client, buffer);
      task.Start();
    }
    while (client->HasUnawaited()) ASSERT_TRUE(client->Poll());
    const uint64_t landed = ReadWord(*other, Line(4));
    while (client->Poll()) continue;
    EXPECT_EQ(ReadWord(*other, Line(4)), landed);
  });
}

// ---- many trips at once

Task<Done> OwnWord(Client& client, uint64_t word, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= rounds; ++i) {
    const uint64_t value = (word << 32) + i;
    co_await op.InOrder(WriteObject(At(8 * word), value));
    const auto read = co_await op.InOrder(Read<uint64_t>(At(8 * word)));
    EXPECT_EQ(read, value);
    co_await op.InOrder(Faa(At(8), 1));
  }
  co_return Done{};
}

// Given a hundred operations of one client at once. Expect that each gets its own answers.
const Cite kMany("fabric/34", "any number of trips in flight, and each is answered for itself");
TEST_P(FabricClient, ManyTripsAreInFlightAtOnce) {
  InManyWorlds({1024}, [](World& world) {
    const auto client = world.Connect();
    const auto other = world.Connect();
    std::vector<Part> parts;
    for (uint64_t word = 2; word < 102; ++word) {
      parts.push_back({client.get(), [word](Client& c) { return OwnWord(c, word, 3); }});
    }
    parts.push_back({other.get(), [](Client& c) { return OwnWord(c, 110, 100); }});
    world.PlayWell(parts);
    EXPECT_EQ(ReadWord(*client, At(8)), 400u);
  });
}

// ---- time

Task<Done> Pauses(Client& client, Nanos pause, std::vector<Nanos>& overslept) {
  Op op(client, OpKind::kMaintenance);
  for (int i = 0; i < 3; ++i) {
    const Nanos start = client.Now();
    co_await op.Pause(pause);
    overslept.push_back(client.Now() - start - pause);
  }
  co_return Done{};
}

// Given operations that pause for different times. Expect that none goes on too early, and that those whose
// pause was abandoned do not go on at all.
const Cite kTimers("fabric/35", "resumes its waiter when its time has come and not before");
TEST_P(FabricClient, TimersAreNeverEarly) {
  InManyWorlds({1024}, [](World& world) {
    const auto client = world.Connect();
    std::vector<Nanos> overslept;
    std::vector<Nanos> abandoned;
    {
      Task<Done> dies = Pauses(*client, 1us, abandoned);
      dies.Start();
    }
    std::vector<Part> parts;
    for (const Nanos pause : {Nanos(0), Nanos(20us), Nanos(3us)}) {
      parts.push_back({client.get(), [&overslept, pause](Client& c) { return Pauses(c, pause, overslept); }});
    }
    world.PlayWell(parts);
    EXPECT_EQ(overslept.size(), 9u);
    for (const Nanos late : overslept) EXPECT_GE(late, Nanos(0));
    EXPECT_TRUE(abandoned.empty());
  });
}

Nanos ProcessorTimeOfThread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Nanos(time.tv_nsec);
}

Task<Done> PausesLong(Client& client, Nanos pause, Nanos& took) {
  Op op(client, OpKind::kMaintenance);
  const Nanos before = ProcessorTimeOfThread();
  co_await op.Pause(pause);
  took = ProcessorTimeOfThread() - before;
  co_return Done{};
}

// Given a client that waits for a long time, as for a lock whose holder is stopped, and has nothing in
// flight.
// Expect that its thread sleeps, and does not look again and again: on a machine that is busy it takes even
// less time of a processor.
TEST_P(FabricClient, ALongPauseTakesLittleProcessorTime) {
  if (GetParam().simulated) GTEST_SKIP() << "its time passes at once";
  constexpr Nanos kPause = 400ms;
  InManyWorlds({1024}, [&](World& world) {
    const auto client = world.Connect();
    Nanos took{0};
    const std::vector<Part> parts = {{client.get(), [&](Client& c) { return PausesLong(c, kPause, took); }}};
    world.PlayWell(parts);
    EXPECT_LT(took, kPause / 20);
  });
}

Task<Done> NeverResumed() {
  co_await std::suspend_always();
  co_return Done{};
}

// Given a client with nothing in flight. Expect that polling says so, and that a task that waits for
// something else is not waited for.
const Cite kIdle("fabric/36", "says so, rather than waiting for ever");
TEST_P(FabricClient, PollingAnIdleClientSaysSo) {
  InManyWorlds({1024}, [](World& world) {
    const auto client = world.Connect();
    EXPECT_FALSE(client->Poll());
    WriteWord(*client, Line(0), 1);
    EXPECT_FALSE(client->Poll());
    const Result<Done> stuck = fabric::Run(*client, NeverResumed());
    ASSERT_FALSE(stuck.ok());
    EXPECT_EQ(stuck.error().code(), ErrorCode::kUnavailable);
  });
}

// ---- regions

// Given three nodes. Expect that their regions have the sizes asked for, hold zeros, and are not the same
// memory.
const Cite kRegions("fabric/37", "separate from each other, and zero if they are new");
TEST_P(FabricClient, RegionsAreSeparateAndZero) {
  InManyWorlds({1024, 4096, 64}, [](World& world) {
    const auto client = world.Connect();
    const std::vector<uint64_t> expected = {1024, 4096, 64};
    const auto of_client = client->region_bytes();
    const auto of_fabric = world.fabric().region_bytes();
    EXPECT_EQ(std::vector<uint64_t>(of_client.begin(), of_client.end()), expected);
    EXPECT_EQ(std::vector<uint64_t>(of_fabric.begin(), of_fabric.end()), expected);
    EXPECT_FALSE(world.fabric().name().empty());
    for (uint16_t node = 0; node < 3; ++node) {
      EXPECT_EQ(ReadBytes(*client, At(0, node), expected[node]), std::vector<std::byte>(expected[node]));
      WriteWord(*client, At(0, node), node + 1);
    }
    for (uint16_t node = 0; node < 3; ++node) EXPECT_EQ(ReadWord(*client, At(0, node)), node + 1u);
  });
}

// ---- counting

Task<Done> CountedTrips(Client& client) {
  Op op(client, OpKind::kInsert);
  std::array<std::byte, 100> block{};
  co_await op.InOrder(Cas(Line(0), 0, 1), Read<uint64_t>(Line(1)));
  co_await op.InOrder(Write(Line(2), block), Fenced(Cas(Line(0), 7, 0)));  // two round trips; the CAS fails
  co_await op.InOrder(ForBlock(Read(Line(2), block)));                     // not an index trip
  co_await op.Together(Faa(Line(4, 0), 1), MaskedCas(Line(4, 1), 0, 0, 1, 1, 1));  // two trips, one in depth
  co_await op.InOrder(ForMaintenance(Faa(Line(5), 1)));
  op.Detach(Order::kInOrder, Faa(Line(5), 1));
  Batch many(op, Order::kInOrder);
  for (uint64_t i = 0; i < 17; ++i) many.Add(Faa(At(8 * i), 0));  // two round trips
  co_await many;
  op.CountRetry();
  op.End(OpKind::kUpdate, OpOutcome::kDone);
  co_return Done{};
}

// Given one operation with some of everything. Expect the same figures on every backend.
const Cite kCounters("fabric/38", "depends on the verbs posted and not on the backend");
TEST_P(FabricClient, CountsAreTheSameEverywhere) {
  InManyWorlds({1024, 1024}, [](World& world) {
    const auto client = world.Connect();
    world.PlayWell(std::array{Part{client.get(), CountedTrips}});
    const OpTally& tally = client->counters().at(OpKind::kUpdate, OpOutcome::kDone);
    EXPECT_EQ(tally.operations, 1u);
    EXPECT_EQ(tally.index_trips, 7u);
    EXPECT_EQ(tally.end_to_end_trips, 8u);
    EXPECT_EQ(tally.maintenance_trips, 1u);
    EXPECT_EQ(tally.detached_trips, 1u);
    EXPECT_EQ(tally.depth, 7u);
    EXPECT_EQ(tally.retries, 1u);
    const VerbTally& index = tally.by_purpose[static_cast<size_t>(Purpose::kIndex)];
    EXPECT_EQ(index.verbs[static_cast<size_t>(VerbKind::kRead)], 1u);
    EXPECT_EQ(index.verbs[static_cast<size_t>(VerbKind::kWrite)], 1u);
    EXPECT_EQ(index.verbs[static_cast<size_t>(VerbKind::kCas)], 2u);
    EXPECT_EQ(index.verbs[static_cast<size_t>(VerbKind::kMaskedCas)], 1u);
    EXPECT_EQ(index.verbs[static_cast<size_t>(VerbKind::kFaa)], 19u);
    EXPECT_EQ(index.failed_cas, 1u);
    EXPECT_EQ(index.bytes_read, 8u + 22 * 8);
    EXPECT_EQ(index.bytes_written, 100u + 22 * 8);
    const VerbTally& block = tally.by_purpose[static_cast<size_t>(Purpose::kBlock)];
    EXPECT_EQ(block.bytes_read, 100u);
    EXPECT_EQ(tally.by_purpose[static_cast<size_t>(Purpose::kMaintenance)]
                  .verbs[static_cast<size_t>(VerbKind::kFaa)],
              1u);
    EXPECT_EQ(client->counters().Total().operations, 1u);
  });
}

}  // namespace
}  // namespace farside::fabric::conformance
