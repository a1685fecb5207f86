// The freedoms of "When things break" in docs/memory-model.md: the simulator must be seen to use each of
// them, and nothing beyond.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/fabric/conformance/cite.h"
#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

using conformance::Cite;

using FourLines = std::array<uint64_t, 32>;

// A FAA, a WRITE of four lines, and a CAS that must follow the WRITE.
Task<Done> ThreeVerbs(Client& client, std::optional<ErrorCode>& error) {
  Op op(client, OpKind::kUpdate);
  FourLines ones;
  ones.fill(1);
  const auto done =
      co_await op.InOrder(Faa(Line(0), 1), WriteObject(Line(1), ones), Cas(Line(5), 0, 1)).Outcome();
  if (!done.ok()) error = done.error().code();
  co_return Done{};
}

// "F" for the FAA, one "W" per line, "C" for the CAS.
std::string Effects(SimRun& run) {
  std::string text;
  text += run.Word(Line(0)) != 0 ? 'F' : '.';
  for (uint64_t line = 1; line <= 4; ++line) text += run.Word(Line(line)) != 0 ? 'W' : '.';
  text += run.Word(Line(5)) != 0 ? 'C' : '.';
  return text;
}
bool InOrder(const std::string& effects) { return effects[5] != 'C' || effects.substr(1, 4) == "WWWW"; }

// What may be left of the trip when it was cut off.
void ExpectAllKindsOfLeftovers(const Litmus& litmus) {
  EXPECT_SEEN(litmus, "......");
  EXPECT_SEEN(litmus, "F.....");
  EXPECT_SEEN(litmus, ".WWWW.");
  EXPECT_SEEN(litmus, ".WWWWC");
  EXPECT_SEEN(litmus, "FWWWW.");
  EXPECT_SEEN(litmus, "FWWWWC");
}
// Any subset of the lines, over all seeds.
void ExpectAllSubsetsOfLines(const Litmus& litmus) {
  for (int subset = 0; subset < 16; ++subset) {
    std::string lines;
    for (int line = 0; line < 4; ++line) lines += (subset >> line & 1) != 0 ? 'W' : '.';
    EXPECT_GT(litmus.Times("F" + lines + ".") + litmus.Times("." + lines + "."), 0u) << lines << "\n"
                                                                                     << litmus.ToString();
  }
}

SimOptions Torn(uint64_t seed) {
  SimOptions options = Free(seed);
  options.chaos.tear = 900;
  return options;
}

// Given trips whose connection breaks. Expect nothing, parts and all of them, with WRITEs cut between any
// lines, but never a verb without one that had to precede it. When the client hears of it, expect that more
// lands later at times.
const Cite kLost("freedom/15",
                 "nothing, a part or all may have taken effect, and what has not may still do so later");
const Cite kCut("freedom/16", "may have reached any subset of its lines");
TEST(FreedomToBreak, ALostTripLeavesAnyPart) {
  Litmus litmus;
  Litmus later;
  for (uint64_t seed = 1; seed <= Seeds(20000); ++seed) {
    SimOptions options = Torn(seed);
    options.chaos.lose_completion = 100;
    SimRun run(options);
    std::optional<ErrorCode> error;
    Task<Done>& task = run.Start(ThreeVerbs(run.Connect(), error));
    ASSERT_TRUE(run.Finish(task));
    if (!error.has_value()) continue;
    ASSERT_EQ(*error, ErrorCode::kOutcomeUnknown);
    const std::string heard = Effects(run);
    run.Drain();
    const std::string end = Effects(run);
    ASSERT_TRUE(InOrder(heard) && InOrder(end)) << heard << " " << end;
    litmus.Saw(end);
    later.Saw(heard == end ? "that was all" : "more came later");
  }
  ExpectAllKindsOfLeftovers(litmus);
  ExpectAllSubsetsOfLines(litmus);
  EXPECT_SEEN(later, "that was all");
  EXPECT_SEEN(later, "more came later");
}

// ---- death

Task<Done> ReadMany(Client& client, uint64_t trips, uint64_t& done) {
  Op op(client, OpKind::kSearch);
  for (done = 0; done < trips; ++done) co_await op.InOrder(Read<uint64_t>(Line(8)));
  co_return Done{};
}
Task<Done> Fence(Client& client, ClientId victim) {
  Op op(client, OpKind::kMaintenance);
  co_await FenceEverywhere(op, victim);
  co_return Done{};
}

// Given a client that dies in the middle of its trip, and others that go on. Expect the same leftovers; that
// some of it lands when the others have made many trips since; and that a fence at any time puts an end to
// it.
const Cite kLate("freedom/17", "may take effect at any later time, until the client is fenced");
TEST(FreedomToBreak, WhatADeadClientPostedLandsLateUntilItIsFenced) {
  Litmus litmus;
  Litmus later;
  for (uint64_t seed = 1; seed <= Seeds(20000); ++seed) {
    SimRun run(Torn(seed));
    std::optional<ErrorCode> error;
    SimClient& victim = run.Connect();
    Task<Done>& task = run.Start(ThreeVerbs(victim, error));
    for (uint64_t steps = seed % 8; steps > 0 && !task.done(); --steps) run.world.Step();
    if (task.done()) continue;
    run.world.Crash(victim.id());
    const std::string at_death = Effects(run);

    uint64_t trips = 0;
    SimClient& survivor = run.Connect();
    ASSERT_TRUE(run.Do(ReadMany(survivor, 20, trips)).ok());
    const std::string after_trips = Effects(run);
    const bool fences = seed % 2 == 0;
    ASSERT_TRUE(!fences || run.Do(Fence(survivor, victim.id())).ok());
    const std::string fenced = Effects(run);
    run.Drain();
    const std::string end = Effects(run);
    ASSERT_TRUE(!fences || end == fenced) << fenced << ", and after the fence " << end;
    ASSERT_TRUE(InOrder(end)) << end;
    litmus.Saw(end);
    later.Saw(at_death == end ? "that was all" : after_trips == end ? "more came soon" : "more came late");
    ASSERT_FALSE(task.done()) << "a dead client goes on";
  }
  ExpectAllKindsOfLeftovers(litmus);
  ExpectAllSubsetsOfLines(litmus);
  EXPECT_SEEN(later, "that was all");
  EXPECT_SEEN(later, "more came soon");
  EXPECT_SEEN(later, "more came late");
}

// ---- sleep

// Given clients that stop by chance, and a client that fences one after a while. Expect that it may have done
// everything before it hears; that its verbs may land when the other has made many trips since it posted
// them; and that it may wake after it was fenced, to be refused.
const Cite kSleep("freedom/18", "its verbs land late, and it hears late of those that have landed");
TEST(FreedomToBreak, ASleeperLandsLateAndHearsLate) {
  Litmus litmus;
  // As many when sanitized: in the first third of them, no client wakes up fenced.
  for (uint64_t seed = 1; seed <= 6000; ++seed) {
    SimOptions options = Quiet(seed);
    options.chaos.sleep = 200;
    SimRun run(options);
    std::optional<ErrorCode> error;
    SimClient& sleeper = run.Connect();
    Task<Done>& task = run.Start(ThreeVerbs(sleeper, error));
    // The other one does not sleep: what it does is done by hand.
    uint64_t trips = 0;
    SimClient& other = run.Connect();
    Task<Done>& reads = run.Start(ReadMany(other, 100, trips));
    uint64_t landed = 0;
    uint64_t heard = 0;
    while (!reads.done() && run.world.Step()) {
      if (landed == 0 && Effects(run) == "FWWWWC") landed = trips + 1;
      if (heard == 0 && task.done()) heard = trips + 1;
    }
    if (landed > 50) litmus.Saw("landed late");
    if (landed != 0 && landed < 10 && (heard == 0 || heard > 50)) litmus.Saw("landed soon, heard late");
    if (landed != 0 && landed < 10 && heard != 0 && heard < 10) litmus.Saw("not asleep");
    ASSERT_TRUE(run.Do(Fence(other, sleeper.id())).ok());
    const std::string fenced = Effects(run);
    run.Drain();
    ASSERT_EQ(Effects(run), fenced);
    ASSERT_TRUE(task.done());
    if (fenced == "......") {
      ASSERT_EQ(error, ErrorCode::kFenced);
      litmus.Saw("woke up fenced");
    }
  }
  EXPECT_SEEN(litmus, "not asleep");
  EXPECT_SEEN(litmus, "landed late");
  EXPECT_SEEN(litmus, "landed soon, heard late");
  EXPECT_SEEN(litmus, "woke up fenced");
}

// ---- restarts

// Given a node that restarts in the middle of a trip and keeps or loses its memory. Expect any part of the
// trip, then nothing more of it; and an error that is honest.
const Cite kRestart("freedom/19",
                    "cuts trips and handlers at any point, and the memory of the node is kept or lost");
TEST(FreedomToBreak, ARestartCutsATripAnywhere) {
  Litmus kept;
  for (uint64_t seed = 1; seed <= Seeds(8000); ++seed) {
    const bool keep_memory = seed % 4 != 0;
    SimRun run(Torn(seed));
    run.SetWord(Line(7), 42);
    std::optional<ErrorCode> error;
    SimClient& client = run.Connect();
    Task<Done>& task = run.Start(ThreeVerbs(client, error));
    for (uint64_t steps = seed % 9; steps > 0; --steps) run.world.Step();
    const std::string before = Effects(run);
    run.world.RestartNode(NodeId{0}, keep_memory);
    const std::string after = Effects(run);
    ASSERT_EQ(run.Word(Line(7)), keep_memory ? 42u : 0u);
    ASSERT_TRUE(keep_memory || after == "......");
    run.Drain();
    ASSERT_EQ(Effects(run), after) << "landed after the restart";
    ASSERT_TRUE(task.done());
    ASSERT_TRUE(InOrder(after));
    if (!error.has_value()) {
      ASSERT_EQ(before, "FWWWWC");
    } else if (*error != ErrorCode::kOutcomeUnknown) {
      ASSERT_EQ(*error, ErrorCode::kUnavailable);
      ASSERT_EQ(before, "......");
    }
    if (keep_memory && error.has_value()) kept.Saw(after);
  }
  EXPECT_SEEN(kept, "......");
  EXPECT_SEEN(kept, "F.....");
  EXPECT_SEEN(kept, ".WWWW.");
  EXPECT_SEEN(kept, "FWWWW.");
  ExpectAllSubsetsOfLines(kept);
}

// Given a node that restarts in the middle of a handler. Expect any number of its first stores.
TEST(FreedomToBreak, ARestartCutsAHandlerAnywhere) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(1000); ++seed) {
    SimRun run(Torn(seed));
    run.world.calls().Set(CallId(1, 1), [](NodeMemory& memory, ClientId, std::string_view) {
      for (uint64_t line = 0; line < 3; ++line) memory.Store(line * kLineBytes, 1);
      return std::string();
    });
    SimClient& client = run.Connect();
    {
      Op op(client, OpKind::kUpdate);
      op.Detach(Order::kInOrder, CallVerb(NodeId{0}, CallId(1, 1), ""));
    }
    for (uint64_t steps = seed % 6; steps > 0; --steps) run.world.Step();
    run.world.RestartNode(NodeId{0}, /*keep_memory=*/true);
    run.Drain();
    litmus.Saw(std::to_string(run.Word(Line(0))) + std::to_string(run.Word(Line(1))) +
               std::to_string(run.Word(Line(2))));
  }
  for (const std::string stores : {"000", "100", "110", "111"}) EXPECT_SEEN(litmus, stores);
  for (const std::string stores : {"010", "001", "011", "101"}) EXPECT_NEVER_SEEN(litmus, stores);
}

}  // namespace
}  // namespace farside::fabric::sim
