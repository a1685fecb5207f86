// The digest of a simulated run says whether two runs were the same, and changes nothing about them.
#include "fabric/sim/verb_digest.h"

#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

// What a client does, and every detail of it that a test changes.
struct Program {
  uint64_t address = 64;
  uint64_t value = 7;
  uint64_t expect = 0;
  Purpose purpose = Purpose::kIndex;
  bool fenced = false;
  bool swapped = false;  // the WRITE comes behind the CAS
  bool together = false;
  Nanos pause{0};
};

Task<Done> RunProgram(Client& client, Program program) {
  Op op(client, OpKind::kUpdate);
  const std::array<uint64_t, 20> block = {1, 2, program.value};
  auto write = WriteObject(At(program.address), block);
  auto cas = Cas(At(0), program.expect, 1);
  write.verb.purpose = program.purpose;
  cas.verb.fenced = program.fenced;
  if (program.pause > Nanos(0)) co_await op.Pause(program.pause);
  if (program.together) {
    co_await op.Together(write, cas);
  } else if (program.swapped) {
    co_await op.InOrder(cas, write);
  } else {
    co_await op.InOrder(write, cas);
  }
  co_await op.InOrder(Read<std::array<uint64_t, 20>>(At(program.address)));
  co_return Done{};
}

struct DigestedRun {
  uint64_t digest = 0;
  uint64_t verbs = 0;
  uint64_t events = 0;
};

DigestedRun RunOnce(const Program& program, SimOptions options = {}, int clients = 2) {
  VerbDigest digest;
  options.digest = &digest;
  SimRun run(options);
  for (int i = 0; i < clients; ++i) run.Start(RunProgram(run.Connect(), program));
  run.Drain();
  return {.digest = digest.value(), .verbs = digest.verbs(), .events = run.world.events()};
}

// Given the same programs and seed twice. Expect the same digest, also when a trace is written.
TEST(VerbDigest, TheSameRunHasTheSameDigest) {
  const DigestedRun once = RunOnce({});
  EXPECT_EQ(once.digest, RunOnce({}).digest);
  EXPECT_EQ(once.verbs, 6u);

  Trace trace;
  EXPECT_EQ(once.digest, RunOnce({}, {.trace = &trace}).digest);
  EXPECT_NE(trace.ToString(), "");
}

// Given a program, and others that differ from it in one detail each. Expect that all digests differ.
TEST(VerbDigest, EveryDetailOfAVerbCounts) {
  const std::array<Program, 9> programs = {{
      {},
      {.address = 128},
      {.value = 8},
      {.expect = 3},
      {.purpose = Purpose::kBlock},
      {.fenced = true},
      {.swapped = true},
      {.together = true},
      {.pause = Nanos(5000)},
  }};
  std::set<uint64_t> digests;
  for (const Program& program : programs)
    digests.insert(RunOnce(program, {.chaos = Chaos::Calm()}, 1).digest);
  EXPECT_EQ(digests.size(), programs.size());
}

// Given the same programs in worlds of different seeds, and in one where clients die. Expect other digests.
TEST(VerbDigest, OtherInterleavingsAndFaultsHaveOtherDigests) {
  std::set<uint64_t> digests;
  for (uint64_t seed = 1; seed <= 20; ++seed) digests.insert(RunOnce({}, {.seed = seed}).digest);
  digests.insert(RunOnce({}, {.fault = Fault{1, FaultKind::kCrashAfter}}).digest);
  digests.insert(RunOnce({}, {.fault = Fault{1, FaultKind::kSleepAfter}}).digest);
  digests.insert(RunOnce({}, {.fault = Fault{1, FaultKind::kLoseCompletion}}).digest);
  EXPECT_EQ(digests.size(), 23u);
}

// Given two worlds that are the same but for what lay in memory before. Expect that answers count.
TEST(VerbDigest, AnswersCount) {
  std::set<uint64_t> digests;
  for (const uint64_t found : {0, 1}) {
    VerbDigest digest;
    SimRun run({.chaos = Chaos::Calm(), .digest = &digest});
    run.SetWord(At(0), found);
    run.Start(RunProgram(run.Connect(), {}));
    run.Drain();
    digests.insert(digest.value());
  }
  EXPECT_EQ(digests.size(), 2u);
}

// Given one digest for two worlds. Expect that the order of the worlds counts.
TEST(VerbDigest, GoesOnFromWorldToWorld) {
  std::set<uint64_t> digests;
  for (const auto& [first, second] : {std::pair{1, 2}, std::pair{2, 1}, std::pair{1, 1}}) {
    VerbDigest digest;
    for (const int seed : {first, second}) {
      SimRun run({.seed = static_cast<uint64_t>(seed), .digest = &digest});
      run.Start(RunProgram(run.Connect(), {}));
      run.Drain();
    }
    digests.insert(digest.value());
  }
  EXPECT_EQ(digests.size(), 3u);
}

}  // namespace
}  // namespace farside::fabric::sim
