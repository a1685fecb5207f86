// What a trip takes on the timed fabric while nothing else happens: exactly what the model says.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/timed_run.h"

namespace farside::fabric::sim {
namespace {

TimedOptions OneOfEach() { return {.region_bytes = {64 * 1024, 64 * 1024}, .model = RoundModel()}; }

// At 100 Gb/s. Rounded as a client's clock is, at the end and not in between.
double OnWire(double bytes) { return bytes * 0.08; }
constexpr double kHeader = 64;

using Program = Task<Done> (*)(Client& client);

Nanos TimeOf(Program program, const TimedOptions& options = OneOfEach()) {
  TimedRun run(options);
  run.world().calls().Set(CallId(1, 1), [](NodeMemory&, ClientId, std::string_view request) {
    return Result<std::string>(std::string(request));
  });
  Client& client = run.Connect();
  EXPECT_TRUE(run.Do(program(client)).ok());
  return run.world().Now();
}
Nanos Expected(double nanos) { return Nanos(static_cast<int64_t>(nanos)); }

template <size_t kBytes>
Task<Done> ReadOnce(Client& client) {
  Op op(client, OpKind::kSearch);
  std::array<std::byte, kBytes> into;
  co_await op.InOrder(Read(Line(0), into));
  co_return Done{};
}
Task<Done> WriteOnce(Client& client) {
  Op op(client, OpKind::kUpdate);
  const std::array<std::byte, 1000> from{};
  co_await op.InOrder(Write(Line(0), from));
  co_return Done{};
}
Task<Done> CasOnce(Client& client) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Cas(Line(0), 0, 1));
  co_return Done{};
}
Task<Done> CallOnce(Client& client) {
  Op op(client, OpKind::kUpdate);
  const std::string reply = co_await op.Call(NodeId{0}, CallId(1, 1), "hello");
  EXPECT_EQ(reply, "hello");
  co_return Done{};
}

// Given an idle world. Expect that one verb takes posting, the round trip, its bytes on the wire once each
// way, and the completion; nothing for the card, whose work is in the round trip.
TEST(TimedLatency, OneVerbTakesWhatTheModelSays) {
  const double around = 70 + 30 + 2000 + 50;
  EXPECT_EQ(TimeOf(ReadOnce<64>), Expected(around + OnWire(kHeader) + OnWire(kHeader + 64)));
  EXPECT_EQ(TimeOf(ReadOnce<512>), Expected(around + OnWire(kHeader) + OnWire(kHeader + 512)));
  EXPECT_EQ(TimeOf(WriteOnce), Expected(around + OnWire(kHeader + 1000) + OnWire(kHeader)));
  EXPECT_EQ(TimeOf(CasOnce), Expected(around + OnWire(kHeader + 16) + OnWire(kHeader + 8)));
  EXPECT_EQ(TimeOf(CallOnce), Expected(around + 1500 + OnWire(kHeader + 5) + OnWire(kHeader + 5)));
}

Task<Done> CallAndNote(Client& client, Nanos& ended) {
  Op op(client, OpKind::kUpdate);
  co_await op.Call(NodeId{0}, CallId(1, 2), "");
  ended = client.Now();
  co_return Done{};
}

// Given a handler that flushes two lines by one flush and one by another, and drains twice. Expect that its
// Call takes the time for these beside; that other Calls wait for it, be they there already or come later;
// and that the counts are those of the handlers that have run.
TEST(TimedLatency, WhatAHandlerFlushesTakesTimeOfTheNode) {
  TimedRun run(OneOfEach());
  run.world().calls().Set(CallId(1, 2), [](NodeMemory& memory, ClientId, std::string_view) {
    memory.Flush(60, 8);
    memory.Drain();
    memory.Flush(256, 64);
    memory.Drain();
    return Result<std::string>(std::string());
  });
  const double alone = 70 + 30 + 2000 + 50 + 1500 + 3 * 30 + 2 * 60 + 2 * OnWire(kHeader);
  std::array<Nanos, 4> ended{};
  for (size_t i = 0; i < 3; ++i) run.Start(CallAndNote(run.Connect(), ended[i]));
  run.RunUntil(3us);  // the first handler runs or has run, and the others wait
  run.Start(CallAndNote(run.Connect(), ended[3]));
  run.Drain();
  EXPECT_EQ(ended[0], Expected(alone));
  for (size_t i = 1; i < ended.size(); ++i)
    EXPECT_NEAR(static_cast<double>((ended[i] - ended[i - 1]).count()), 1710, 1);
  EXPECT_EQ(run.world().flushed(), (FlushCounts{.lines = 12, .drains = 8}));
}

// Given READs of more than a packet. Expect a header for each packet of the answer, and the card's work for
// each; once, since the cards work at the same time.
TEST(TimedLatency, LargeReadsTakeSeveralPackets) {
  const double packets = 4;
  EXPECT_EQ(TimeOf(ReadOnce<4 * 4096>),
            Expected(70 + 30 + 2000 + 50 + (packets - 1) * 25 + OnWire(packets * kHeader + 4 * 4096)));
}

Task<Done> LockAndRead(Client& client) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Cas(Line(0), 0, 1), Read<std::array<uint64_t, 8>>(Line(1)));
  co_return Done{};
}
Task<Done> LockFenceRead(Client& client) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Cas(Line(0), 0, 1), Fenced(Read<std::array<uint64_t, 8>>(Line(1))));
  co_return Done{};
}

// Given two verbs in one trip, with a fence between them and without. Expect one round trip more with it.
TEST(TimedLatency, AFenceCostsARoundTrip) {
  const double requests = OnWire(2 * kHeader + 16);
  const double answers = OnWire(2 * kHeader + 8 + 64);
  // Both verbs pass a card's verb engine while their bytes pass its wire: the longer of the two counts.
  EXPECT_EQ(TimeOf(LockAndRead), Expected(70 + 60 + 2000 + 50 + 25 + answers));
  EXPECT_LT(requests, 25);
  EXPECT_EQ(TimeOf(LockFenceRead), Expected(70 + 60 + 4000 + 50 + requests + answers));
}

Task<Done> ManyFaas(Client& client, uint64_t count) {
  Op op(client, OpKind::kUpdate);
  Batch batch(op, Order::kInOrder);
  for (uint64_t i = 0; i < count; ++i) batch.Add(Faa(Line(i), 1));
  co_await batch;
  co_return Done{};
}

// Given trips with as many answered verbs as a round trip carries, and with one more. Expect what CostOf
// counts.
TEST(TimedLatency, MoreThanSixteenAnsweredVerbsAreAnotherRoundTrip) {
  const Nanos sixteen = TimeOf([](Client& client) { return ManyFaas(client, 16); });
  const Nanos seventeen = TimeOf([](Client& client) { return ManyFaas(client, 17); });
  const Nanos sixty_four = TimeOf([](Client& client) { return ManyFaas(client, 64); });
  // Posting, then the atomics one after the other, the first of which did not wait for the last to be sent.
  EXPECT_EQ(sixteen, Expected(70 + 16 * 30 + 2000 + 50 + 15 * 100 + OnWire(16 * (kHeader + 8))));
  EXPECT_GE(seventeen, sixteen + 2000ns);
  EXPECT_LT(seventeen, sixteen + 2200ns);
  EXPECT_GE(sixty_four, 4 * 2000ns);
  EXPECT_LT(sixty_four, 4 * sixteen);
}

Task<Done> ReadTwoNodes(Client& client) {
  Op op(client, OpKind::kSearch);
  using Line64 = std::array<uint64_t, 8>;
  co_await op.Together(Read<Line64>(Line(0, 0)), Read<Line64>(Line(0, 1)));
  co_return Done{};
}

// Given a trip to two nodes at once. Expect one round trip; two doorbells and two completions.
TEST(TimedLatency, TripsToSeveralNodesOverlap) {
  const Nanos both = TimeOf(ReadTwoNodes);
  EXPECT_GE(both, 2 * 70ns + 2 * 30ns + 2000ns + 2 * 50ns);
  EXPECT_LT(both, 2 * 70ns + 2 * 30ns + 2000ns + 2 * 50ns + 100ns);
}

Task<Done> DetachAndPause(Client& client) {
  Op op(client, OpKind::kUpdate);
  op.Detach(Order::kInOrder, Faa(Line(0), 1));
  EXPECT_TRUE(client.HasUnawaited());
  co_await op.Pause(700ns);
  EXPECT_EQ(client.Now(), 700ns);
  EXPECT_TRUE(client.HasUnawaited());
  co_await op.Pause(5us);
  EXPECT_EQ(client.Now(), 5700ns);
  EXPECT_FALSE(client.HasUnawaited());
  const auto word = co_await op.InOrder(Read<uint64_t>(Line(0)));
  EXPECT_EQ(word, 1u);
  co_return Done{};
}

// Given a trip that no coroutine waits for, and pauses. Expect that the pauses end on time, that the client
// says how long the trip is in flight, and that it has landed.
TEST(TimedLatency, DetachedTripsAndPausesOverlap) {
  TimedRun run(OneOfEach());
  Client& client = run.Connect();
  ASSERT_TRUE(run.Do(DetachAndPause(client)).ok());
}

Task<Done> PauseFor(Client& client, Nanos pause, Nanos& woke) {
  Op op(client, OpKind::kMaintenance);
  co_await op.Pause(pause);
  woke = client.Now();
  co_return Done{};
}

// Given pauses from nothing to an hour, set in no order. Expect that each ends when it should, to the
// nanosecond.
TEST(TimedLatency, PausesOfAnyLengthEndOnTime) {
  const std::array<Nanos, 9> pauses = {8192ns, 0ns, 1h, 8191ns, 1ns, 8193ns, 3s, 100us, 1h};
  TimedRun run(OneOfEach());
  std::array<Nanos, pauses.size()> woke{};
  for (size_t i = 0; i < pauses.size(); ++i) run.Start(PauseFor(run.Connect(), pauses[i], woke[i]));
  run.Drain();
  EXPECT_EQ(woke, pauses);
}

}  // namespace
}  // namespace farside::fabric::sim
