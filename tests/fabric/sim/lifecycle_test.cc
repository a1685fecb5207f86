// Clients that leave, die or break while something of them is on its way, and worlds that end.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

using FourLines = std::array<uint64_t, 32>;
constexpr uint64_t kLines = 4;

// Four lines in one WRITE.
Task<Done> WriteLines(Client& client, FarAddr at) {
  Op op(client, OpKind::kUpdate);
  FourLines ones;
  ones.fill(1);
  co_await op.InOrder(WriteObject(at, ones));
  co_return Done{};
}
void DetachLines(Client& client, FarAddr at) {
  Op op(client, OpKind::kUpdate);
  FourLines ones;
  ones.fill(1);
  op.Detach(Order::kInOrder, WriteObject(at, ones));
  ones.fill(7);  // the payload was copied
}

std::string LinesWritten(SimRun& run, FarAddr at) {
  uint64_t written = 0;
  for (uint64_t line = 0; line < kLines; ++line) {
    const uint64_t word = run.Word(at + line * kLineBytes);
    EXPECT_LE(word, 1u);
    written += word;
  }
  return written == 0 ? "none" : written == kLines ? "all" : "part";
}

// Given a client that leaves in good order with trips in flight. Expect that they land all the same if
// nothing goes wrong in this world.
TEST(SimLifecycle, WhatALeavingClientPostedLandsWhereNothingBreaks) {
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    SimRun run(Free(seed));
    SimClient& client = run.Connect();
    Task<Done>& task = run.Start(WriteLines(client, Line(0)));
    DetachLines(client, Line(8));
    run.Drop(task);
    run.Disconnect(client.id());
    run.Drain();
    ASSERT_EQ(LinesWritten(run, Line(0)), "all");
    ASSERT_EQ(LinesWritten(run, Line(8)), "all");
    ASSERT_EQ(run.world.flights(), 0u);
  }
}

// Given the same where connections break. Expect that a trip may also be cut: leaving is a disconnect.
TEST(SimLifecycle, WhatALeavingClientPostedMayBeCutWhereConnectionsBreak) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(600); ++seed) {
    SimOptions options = Free(seed);
    options.chaos.tear = 900;
    options.chaos.lose_completion = 1;
    SimRun run(options);
    SimClient& client = run.Connect();
    DetachLines(client, Line(0));
    for (uint64_t steps = seed % 4; steps > 0; --steps) run.world.Step();
    run.Disconnect(client.id());
    run.Drain();
    litmus.Saw(LinesWritten(run, Line(0)));
  }
  EXPECT_SEEN(litmus, "none");
  EXPECT_SEEN(litmus, "part");
  EXPECT_SEEN(litmus, "all");
}

// Given a client with two trips in flight, one of which loses its connection. Expect that the other, too, may
// be cut at any point.
TEST(SimLifecycle, ABrokenConnectionCutsAllItsTrips) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(1500); ++seed) {
    SimOptions options = Free(seed);
    options.chaos.tear = 900;
    options.chaos.lose_completion = 64;
    SimRun run(options);
    SimClient& client = run.Connect();
    Task<Done>& first = run.Start(WriteLines(client, Line(0)));
    Task<Done>& second = run.Start(WriteLines(client, Line(8)));
    run.Drain();
    ASSERT_TRUE(first.done() && second.done());
    const bool both_lost = !first.TakeResult().ok() && !second.TakeResult().ok();
    if (both_lost) litmus.Saw(LinesWritten(run, Line(0)) + ", " + LinesWritten(run, Line(8)));
  }
  for (const std::string one : {"none", "part", "all"}) {
    for (const std::string other : {"none", "part", "all"}) EXPECT_SEEN(litmus, one + ", " + other);
  }
}

// Given a crashed client whose owner has not noticed. Expect that nothing it posts lands, and nothing of it
// runs.
TEST(SimLifecycle, ACrashedClientPostsNothing) {
  SimRun run(Quiet(1));
  SimClient& client = run.Connect();
  run.world.Crash(client.id());
  EXPECT_TRUE(client.crashed());
  DetachLines(client, Line(0));
  Task<Done>& task = run.Start(WriteLines(client, Line(8)));
  run.Drain();
  EXPECT_EQ(LinesWritten(run, Line(0)), "none");
  EXPECT_EQ(LinesWritten(run, Line(8)), "none");
  EXPECT_FALSE(task.done());
}

Task<Done> ReadMany(Client& client, uint64_t trips, uint64_t& done) {
  Op op(client, OpKind::kSearch);
  for (done = 0; done < trips; ++done) co_await op.InOrder(Read<uint64_t>(Line(0)));
  co_return Done{};
}

// Given a client that dies with a WRITE on its way. Expect that at times it lands much later, when the others
// have long gone on; only a FENCE makes sure that it does not.
TEST(SimLifecycle, WhatADeadClientPostedMayLandMuchLater) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(1000); ++seed) {
    SimRun run(Quiet(seed));
    SimClient& victim = run.Connect();
    run.Start(WriteLines(victim, Line(0)));
    run.world.Crash(victim.id());
    uint64_t trips = 0;
    run.Start(ReadMany(run.Connect(), 100, trips));
    while (LinesWritten(run, Line(0)) == "none" && run.world.Step()) continue;
    const bool landed = LinesWritten(run, Line(0)) != "none";
    litmus.Saw(!landed ? "never" : trips < 10 ? "soon" : trips < 100 ? "late" : "when all was over");
    run.Drain();
  }
  EXPECT_SEEN(litmus, "never");
  EXPECT_SEEN(litmus, "soon");
  EXPECT_SEEN(litmus, "late");
  EXPECT_SEEN(litmus, "when all was over");
}

// Given a broken client. Expect that what it detaches is dropped, and that a new client works.
TEST(SimLifecycle, DetachAfterBrokenDoesNothing) {
  SimOptions options = Quiet(1);
  options.fault = Fault{.verb = 0, .kind = FaultKind::kLoseCompletion};
  SimRun run(options);
  SimClient& client = run.Connect();
  EXPECT_FALSE(run.Do(WriteLines(client, Line(0))).ok());
  DetachLines(client, Line(8));
  run.Drain();
  EXPECT_EQ(LinesWritten(run, Line(8)), "none");
  EXPECT_TRUE(run.Do(WriteLines(run.Connect(), Line(8))).ok());
  EXPECT_EQ(LinesWritten(run, Line(8)), "all");
}

// Given a client that sleeps, with a trip landed, one on its way and a timer. When it is destroyed, expect
// that the world goes on without it.
TEST(SimLifecycle, AClientIsDestroyedAsleep) {
  for (uint64_t seed = 1; seed <= Seeds(100); ++seed) {
    SimRun run(Free(seed));
    SimClient& client = run.Connect();
    uint64_t done = 0;
    Task<Done>& reads = run.Start(ReadMany(client, 100, done));
    Task<Done>& write = run.Start(WriteLines(client, Line(0)));
    for (uint64_t steps = seed % 10; steps > 0; --steps) run.world.Step();
    run.world.Sleep(client.id(), std::chrono::seconds(1));
    for (uint64_t steps = seed % 7; steps > 0; --steps) run.world.Step();
    run.Drop(reads);
    run.Drop(write);
    run.Disconnect(client.id());
    ASSERT_TRUE(run.Do(WriteLines(run.Connect(), Line(8))).ok());
    run.Drain();
    ASSERT_EQ(run.world.flights(), 0u);
  }
}

// Given a world that ends with trips and timers on their way, clients and tasks already gone. Expect that
// this leaks nothing and touches nothing that is gone (which the sanitizers watch).
TEST(SimLifecycle, AWorldEndsWithThingsOnTheirWay) {
  for (uint64_t seed = 1; seed <= Seeds(100); ++seed) {
    SimRun run(Free(seed));
    SimClient& client = run.Connect();
    run.Start(WriteLines(client, Line(0)));
    DetachLines(client, Line(8));
    for (uint64_t steps = seed % 10; steps > 0; --steps) run.world.Step();
  }
}

// Given operations that are destroyed at every possible moment of their trips. Expect that nothing touches
// them afterwards, and that the client goes on working.
TEST(SimLifecycle, TripsAreAbandonedAtEveryMoment) {
  for (uint64_t seed = 1; seed <= Seeds(300); ++seed) {
    SimRun run(Free(seed));
    SimClient& client = run.Connect();
    uint64_t done = 0;
    Task<Done>& reads = run.Start(ReadMany(client, 3, done));
    for (uint64_t steps = seed % 13; steps > 0; --steps) run.world.Step();
    run.Drop(reads);
    ASSERT_TRUE(run.Do(WriteLines(client, Line(8))).ok());
    run.Drain();
    ASSERT_EQ(run.world.flights(), 0u);
  }
}

}  // namespace
}  // namespace farside::fabric::sim
