// Exact faults: each happens at the verb that was asked for, once, and does what fault.h says.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

using FourLines = std::array<uint64_t, 32>;
FourLines Filled(uint64_t word) {
  FourLines lines;
  lines.fill(word);
  return lines;
}

// A log of what a client has lived through.
struct Life {
  uint64_t trips = 0;  // completed
  std::optional<ErrorCode> error;
  Nanos ended{0};
};

// Verbs 0 to 4, in three trips: a FAA; two WRITEs of which the first has four lines; a CAS and a READ.
Task<Done> ThreeTrips(Client& client, Life& life) {
  Op op(client, OpKind::kUpdate);
  const FourLines ones = Filled(1);
  const uint64_t one = 1;
  life.error = ErrorCode::kUnsupported;  // until the end is reached
  const auto first = co_await op.InOrder(Faa(Line(0), 1)).Outcome();
  if (first.ok()) ++life.trips;
  const auto second = co_await op.InOrder(WriteObject(Line(1), ones), WriteObject(Line(5), one)).Outcome();
  if (second.ok()) ++life.trips;
  const auto third = co_await op.InOrder(Cas(Line(6), 0, 1), Read<uint64_t>(Line(6))).Outcome();
  if (third.ok()) ++life.trips;
  life.error.reset();
  if (!second.ok()) life.error = second.error().code();
  if (!first.ok()) life.error = first.error().code();
  if (second.ok() && !third.ok()) life.error = third.error().code();
  life.ended = client.Now();
  co_return Done{};
}

// What there is to see in memory: which verbs have taken effect.
std::string Effects(SimRun& run) {
  std::string text;
  text += run.Word(Line(0)) != 0 ? 'F' : '.';
  for (uint64_t line = 1; line <= 4; ++line) text += run.Word(Line(line)) != 0 ? 'W' : '.';
  text += run.Word(Line(5)) != 0 ? 'w' : '.';
  text += run.Word(Line(6)) != 0 ? 'C' : '.';
  return text;
}

SimOptions WithFault(uint64_t seed, uint64_t verb, FaultKind kind) {
  SimOptions options = Quiet(seed);
  options.fault = Fault{.verb = verb, .kind = kind};
  return options;
}

struct Expected {
  FaultKind kind;
  uint64_t verb;
  std::string_view effects;
  bool crashed;
};

// Given a calm world and a fault at one verb. Expect that exactly the verbs before it (and it, if the client
// dies after it) have taken effect.
TEST(SimFault, CrashesCutExactlyThere) {
  const Expected all[] = {
      {FaultKind::kCrashBefore, 0, ".......", true},  {FaultKind::kCrashAfter, 0, "F......", true},
      {FaultKind::kCrashBefore, 1, "F......", true},  {FaultKind::kCrashAfter, 1, "FWWWW..", true},
      {FaultKind::kCrashBefore, 2, "FWWWW..", true},  {FaultKind::kCrashAfter, 2, "FWWWWw.", true},
      {FaultKind::kCrashBefore, 3, "FWWWWw.", true},  {FaultKind::kCrashAfter, 3, "FWWWWwC", true},
      {FaultKind::kCrashBefore, 4, "FWWWWwC", true},  {FaultKind::kCrashAfter, 4, "FWWWWwC", true},
      {FaultKind::kCrashBefore, 5, "FWWWWwC", false},  // there is no verb 5
  };
  for (const Expected& expected : all) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(std::string(Name(expected.kind)) + " " + std::to_string(expected.verb));
      SimRun run(WithFault(seed, expected.verb, expected.kind));
      Life life;
      SimClient& client = run.Connect();
      run.Start(ThreeTrips(client, life));
      run.Drain();
      EXPECT_EQ(Effects(run), expected.effects);
      EXPECT_EQ(client.crashed(), expected.crashed);
      EXPECT_EQ(run.world.fault_fired(), expected.crashed);
      EXPECT_EQ(life.error.has_value(), expected.crashed) << "the program of a dead client goes on";
    }
  }
}

// Given a crash in the middle of the WRITE of four lines. Expect one line of it, any of the four, and nothing
// that follows.
TEST(SimFault, CrashMidLeavesOneLine) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimRun run(WithFault(seed, 1, FaultKind::kCrashMid));
    Life life;
    SimClient& client = run.Connect();
    run.Start(ThreeTrips(client, life));
    run.Drain();
    EXPECT_TRUE(client.crashed());
    litmus.Saw(Effects(run));
  }
  EXPECT_SEEN(litmus, "FW.....");
  EXPECT_SEEN(litmus, "F.W....");
  EXPECT_SEEN(litmus, "F..W...");
  EXPECT_SEEN(litmus, "F...W..");
  EXPECT_EQ(
      litmus.Times("FW.....") + litmus.Times("F.W....") + litmus.Times("F..W...") + litmus.Times("F...W.."),
      100u);
}

// Given a crash in the middle of an atomic. Expect both ends: it was stored back, or not.
TEST(SimFault, CrashMidOfAnAtomicGoesEitherWay) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimRun run(WithFault(seed, 0, FaultKind::kCrashMid));
    Life life;
    run.Start(ThreeTrips(run.Connect(), life));
    run.Drain();
    EXPECT_TRUE(run.world.fault_fired());
    litmus.Saw(Effects(run));
  }
  EXPECT_SEEN(litmus, ".......");
  EXPECT_SEEN(litmus, "F......");
}

// Given a crash in the middle of a verb that has no middle. Expect that nothing happens.
TEST(SimFault, CrashMidOfOneLineNeverComes) {
  SimRun run(WithFault(1, 2, FaultKind::kCrashMid));
  Life life;
  run.Start(ThreeTrips(run.Connect(), life));
  run.Drain();
  EXPECT_FALSE(run.world.fault_fired());
  EXPECT_EQ(life.trips, 3u);
}

// Given a completion that is lost. Expect that the whole trip has taken effect, that its client is told so,
// and that it is broken for good.
TEST(SimFault, LostCompletionAfterTheWholeTrip) {
  for (uint64_t verb : {1, 2}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      SimRun run(WithFault(seed, verb, FaultKind::kLoseCompletion));
      Life life;
      SimClient& client = run.Connect();
      run.Start(ThreeTrips(client, life));
      run.Drain();
      EXPECT_EQ(Effects(run), "FWWWWw.");
      EXPECT_EQ(life.trips, 1u);
      EXPECT_EQ(life.error, ErrorCode::kOutcomeUnknown);
      EXPECT_FALSE(client.crashed());
    }
  }
}

Task<Done> ReadOnly(Client& client, Life& life) {
  Op op(client, OpKind::kSearch);
  const auto read = co_await op.InOrder(Read<uint64_t>(Line(0))).Outcome();
  if (!read.ok()) life.error = read.error().code();
  const auto again = co_await op.InOrder(Faa(Line(0), 1)).Outcome();
  EXPECT_FALSE(again.ok());
  if (!again.ok()) {
    EXPECT_EQ(again.error().code(), ErrorCode::kUnavailable);
  }
  co_return Done{};
}
// Given the same for a trip that could have changed nothing. Expect the error that says so.
TEST(SimFault, LostCompletionOfReadsChangesNothing) {
  SimRun run(WithFault(1, 0, FaultKind::kLoseCompletion));
  Life life;
  run.Start(ReadOnly(run.Connect(), life));
  run.Drain();
  EXPECT_EQ(life.error, ErrorCode::kUnavailable);
  EXPECT_EQ(run.Word(Line(0)), 0u);
}

// Given a sleep before or after a verb. Expect that the program ends well, but later by the sleep, and that
// the verb lands after the sleep, or before it.
TEST(SimFault, SleepsDelayTheClientAndPerhapsTheVerb) {
  for (const FaultKind kind : {FaultKind::kSleepBefore, FaultKind::kSleepAfter}) {
    SimOptions options = WithFault(3, 1, kind);
    SimRun run(options);
    Life life;
    run.Start(ThreeTrips(run.Connect(), life));
    Nanos landed{0};
    while (run.world.Step()) {
      if (landed == Nanos{0} && run.Word(Line(1)) != 0) landed = run.world.Now();
    }
    EXPECT_EQ(life.trips, 3u);
    EXPECT_GE(life.ended, options.chaos.longest_sleep);
    EXPECT_EQ(landed >= options.chaos.longest_sleep, kind == FaultKind::kSleepBefore);
    EXPECT_TRUE(run.world.fault_fired());
  }
}

// ---- verbs that others finish

Task<Done> AddOne(Client& client) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Faa(Line(0), 1));
  co_return Done{};
}
Task<Done> ReadLines(Client& client) {
  Op op(client, OpKind::kSearch);
  co_await op.InOrder(Read<FourLines>(Line(1)));
  co_return Done{};
}
Task<Done> WriteTwice(Client& client) {
  Op op(client, OpKind::kUpdate);
  const uint64_t one = 1;
  co_await op.InOrder(WriteObject(Line(1), one));
  co_await op.InOrder(WriteObject(Line(2), one));
  co_return Done{};
}
Task<Done> CallOnce(Client& client) {
  Op op(client, OpKind::kUpdate);
  co_await op.Call(NodeId{0}, CallId(1, 1), "");
  co_return Done{};
}

// Given atomics in two steps, READs in pieces and Calls, which others may have to finish before they go on
// themselves. Expect that a fault after the verb happens all the same.
TEST(SimFault, HappensAlsoWhereAnotherClientFinishesTheVerb) {
  for (const FaultKind kind : {FaultKind::kCrashAfter, FaultKind::kSleepAfter}) {
    for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
      SCOPED_TRACE(std::string(Name(kind)) + ", seed " + std::to_string(seed));
      for (int scenario = 0; scenario < 3; ++scenario) {
        SimOptions options = WithFault(seed, 0, kind);
        options.chaos.split_atomic = options.chaos.tear = 900;
        SimRun run(options);
        run.world.calls().Set(CallId(1, 1), [](NodeMemory& memory, ClientId, std::string_view) {
          for (uint64_t line = 0; line < 8; ++line) memory.Store(line * kLineBytes, 1);
          return std::string();
        });
        SimClient& victim = run.Connect();
        SimClient& other = run.Connect();
        run.Start(scenario == 0 ? AddOne(victim) : scenario == 1 ? ReadLines(victim) : CallOnce(victim));
        run.Start(scenario == 0 ? AddOne(other) : scenario == 1 ? WriteTwice(other) : CallOnce(other));
        run.Drain();
        ASSERT_TRUE(run.world.fault_fired()) << "scenario " << scenario;
        ASSERT_EQ(victim.crashed(), kind == FaultKind::kCrashAfter);
      }
    }
  }
}

// Given a completion that is lost on a trip that no coroutine waits for. Expect that the client notices with
// its next trip.
TEST(SimFault, LostCompletionOfADetachedTripBreaksTheClient) {
  SimRun run(WithFault(1, 0, FaultKind::kLoseCompletion));
  SimClient& client = run.Connect();
  {
    Op op(client, OpKind::kUpdate);
    op.Detach(Order::kInOrder, Faa(Line(0), 1));
  }
  run.Drain();
  EXPECT_EQ(run.Word(Line(0)), 1u);
  const Result<Done> next = run.Do(AddOne(client));
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.error().code(), ErrorCode::kUnavailable);
}

// Given a fault that has not come yet. When StopFaults is called, expect that it never does.
TEST(SimFault, StopFaultsAlsoStopsTheExactOne) {
  SimRun run(WithFault(1, 1, FaultKind::kCrashBefore));
  SimClient& client = run.Connect();
  ASSERT_TRUE(run.Do(AddOne(client)).ok());
  run.world.StopFaults();
  ASSERT_TRUE(run.Do(AddOne(client)).ok());
  EXPECT_FALSE(run.world.fault_fired());
}

// Given a world in which every event is a crash or a loss. When StopFaults is called, expect that nothing
// goes wrong any more.
TEST(SimFault, StopFaultsStopsThoseByChance) {
  SimOptions options = Quiet(1);
  options.chaos.crash = options.chaos.lose_completion = kOneIn / 2;
  SimRun run(options);
  run.world.StopFaults();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(run.Do(AddOne(run.Connect())).ok());
  EXPECT_EQ(run.Word(Line(0)), 100u);
}

}  // namespace
}  // namespace farside::fabric::sim
