// One seed decides everything: the same seed gives the same run, byte for byte.
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

// Some of everything, by clients that do not care what becomes of their trips.
Task<Done> Muddle(Client& client, uint64_t seed) {
  Op op(client, OpKind::kUpdate);
  Random random(seed);
  std::array<uint64_t, 40> block{};
  for (int i = 0; i < 30; ++i) {
    block.fill(random.Next());
    const FarAddr word = At(random.Below(256) * 8, static_cast<uint16_t>(random.Below(2)));
    const FarAddr other = At(random.Below(256) * 8, Index(word.node));
    bool ok = true;
    switch (random.Below(7)) {
      case 0: ok = (co_await op.InOrder(Cas(word, 0, 1), Read<uint64_t>(other)).Outcome()).ok(); break;
      case 1: ok = (co_await op.InOrder(WriteObject(word, block), Cas(other, 0, 2)).Outcome()).ok(); break;
      case 2:
        ok = (co_await op.Together(Faa(word, 1), Faa(At(8, 1), 1), Faa(At(8, 0), 1)).Outcome()).ok();
        break;
      case 3: ok = (co_await op.Call(word.node, CallId(1, 1), "").Outcome()).ok(); break;
      case 4: op.Detach(Order::kInOrder, WriteObject(word, block), Faa(other, 1)); break;
      case 5: co_await op.Pause(Nanos(random.Below(5000))); break;
      case 6: ok = (co_await op.InOrder(Read<std::array<uint64_t, 40>>(word)).Outcome()).ok(); break;
      default: break;
    }
    if (!ok) break;
  }
  co_return Done{};
}

struct Replay {
  std::string trace;
  std::vector<std::byte> memory;
  uint64_t events = 0;
  Nanos now{0};
};

Replay RunOnce(uint64_t seed, bool faults, bool traced) {
  Trace trace;
  SimOptions options;
  options.seed = seed;
  options.region_bytes = {4096, 4096};
  options.chaos = Chaos::ForSeed(seed, faults);
  options.durable = seed % 3 == 0;
  options.chaos.power_cut = faults ? 30 : 0;  // of nodes that are durable
  options.trace = traced ? &trace : nullptr;
  SimRun run(options);
  run.world.calls().Set(CallId(1, 1), [](NodeMemory& memory, ClientId, std::string_view) {
    for (uint64_t word = 0; word < 4; ++word) memory.Store(word * 8, memory.Load(word * 8) + 1);
    memory.Flush(0, 32);
    memory.Drain();
    return std::string();
  });
  for (uint64_t i = 0; i < 4; ++i) run.Start(Muddle(run.Connect(), seed * 100 + i));
  for (uint64_t steps = 0; steps < 100; ++steps) run.world.Step();
  if (faults) run.world.RestartNode(NodeId{1}, seed % 2 == 0);
  run.Drain();

  Replay replay;
  replay.trace = trace.ToString();
  for (uint16_t node : {0, 1}) {
    const auto memory = run.world.memory(NodeId{node});
    replay.memory.insert(replay.memory.end(), memory.begin(), memory.end());
  }
  replay.events = run.world.events();
  replay.now = run.world.Now();
  return replay;
}

// Given the same seed twice. Expect the same trace, memory, number of events and time; and that tracing
// changes none of it.
TEST(SimDeterminism, TheSameSeedGivesTheSameRun) {
  for (uint64_t seed = 1; seed <= Seeds(60); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (const bool faults : {false, true}) {
      const Replay once = RunOnce(seed, faults, true);
      const Replay again = RunOnce(seed, faults, true);
      const Replay untraced = RunOnce(seed, faults, false);
      ASSERT_EQ(once.trace, again.trace);
      ASSERT_EQ(once.memory, again.memory);
      ASSERT_EQ(once.memory, untraced.memory);
      ASSERT_EQ(once.events, untraced.events);
      ASSERT_EQ(once.now, untraced.now);
      ASSERT_NE(once.trace, "");
    }
  }
}

Task<Done> AddThree(Client& client) {
  Op op(client, OpKind::kUpdate);
  for (int i = 0; i < 3; ++i) co_await op.InOrder(Faa(At(0), 1), Faa(At(64), 1));
  co_return Done{};
}

// Given the same programs under different seeds. Expect different runs.
TEST(SimDeterminism, DifferentSeedsDiffer) {
  std::set<std::string> traces;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Trace trace;
    SimOptions options;
    options.seed = seed;
    options.trace = &trace;
    SimRun run(options);
    for (int i = 0; i < 3; ++i) run.Start(AddThree(run.Connect()));
    run.Drain();
    EXPECT_EQ(run.Word(At(0)), 9u);
    traces.insert(trace.ToString());
  }
  EXPECT_EQ(traces.size(), 50u);
}

}  // namespace
}  // namespace farside::fabric::sim
