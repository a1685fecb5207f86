// What is left of a durable node when its power is cut: what its handlers have flushed and drained, and of
// the rest any subset of words.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

constexpr CallId kAct(1, 1);
constexpr NodeId kNode{0};

SimOptions Durable(SimOptions options) {
  options.durable = true;
  return options;
}

// A node whose handler does what it is told.
class PowerCutRun : public SimRun {
 public:
  using Act = std::function<void(NodeMemory&)>;
  PowerCutRun(SimOptions options, Act act) : SimRun(Durable(std::move(options))) {
    world.calls().Set(kAct, [act = std::move(act)](NodeMemory& memory, ClientId, std::string_view) {
      act(memory);
      return std::string("done");
    });
  }
};

Task<Done> CallOnce(Client& client, Result<Done>* result) {
  Op op(client, OpKind::kUpdate);
  const Result<std::string> reply = co_await op.Call(kNode, kAct, "").Outcome();
  *result = reply.ok() ? Result<Done>(Done{}) : Result<Done>(reply.error());
  co_return Done{};
}

// Calls the handler, cuts the power when `step` is done, and says what words are left.
std::vector<uint64_t> WordsAfterCutAt(uint64_t step, uint64_t seed, size_t words, PowerCutRun::Act act,
                                      Result<Done>* result = nullptr) {
  SimOptions options = Quiet(seed);
  options.fault = Fault{.verb = step, .kind = FaultKind::kPowerCut};
  PowerCutRun run(options, std::move(act));
  Result<Done> unused = Done{};
  run.Start(CallOnce(run.Connect(), result != nullptr ? result : &unused));
  run.Drain();
  EXPECT_EQ(run.world.power_cuts(), 1u);
  std::vector<uint64_t> left;
  for (size_t word = 0; word < words; ++word) left.push_back(run.Word(At(word * 8)));
  return left;
}

// Given three words in three lines, stored one after the other twice, and nothing flushed. When the power is
// cut after each of the stores. Expect that each word has any of the values it had by then, in all
// combinations, and no other.
TEST(SimPowerCut, WhatIsNotFlushedSurvivesInAnySubset) {
  const auto act = [](NodeMemory& memory) {
    for (uint64_t round = 1; round <= 2; ++round) {
      for (uint64_t word = 0; word < 3; ++word) memory.Store(word * 8, round);
    }
  };
  for (uint64_t step = 0; step < 6; ++step) {
    std::array<uint64_t, 3> newest{};
    for (uint64_t done = 0; done <= step; ++done) ++newest[done % 3];
    std::set<std::vector<uint64_t>> seen;
    for (uint64_t seed = 1; seed <= 1000; ++seed) {
      const std::vector<uint64_t> left = WordsAfterCutAt(step, seed, 3, act);
      for (size_t word = 0; word < 3; ++word) ASSERT_LE(left[word], newest[word]) << "after step " << step;
      seen.insert(left);
    }
    EXPECT_EQ(seen.size(), (newest[0] + 1) * (newest[1] + 1) * (newest[2] + 1)) << "after step " << step;
  }
}

// Given a store that is flushed and drained, and a later one to the same word that is not. Expect that before
// the drain the word may be anything, and from then on never what it was before the first store.
TEST(SimPowerCut, WhatIsDrainedSurvives_WhatIsOnlyFlushedMayOrMayNot) {
  const auto act = [](NodeMemory& memory) {
    memory.Store(0, 1);  // step 0
    memory.Flush(0, 8);  // 1
    memory.Store(0, 2);  // 2
    memory.Drain();      // 3
    memory.Store(0, 3);  // 4
  };
  const std::vector<std::set<uint64_t>> legal = {{0, 1}, {0, 1}, {0, 1, 2}, {1, 2}, {1, 2, 3}};
  for (uint64_t step = 0; step < legal.size(); ++step) {
    std::set<uint64_t> seen;
    for (uint64_t seed = 1; seed <= 300; ++seed) seen.insert(WordsAfterCutAt(step, seed, 1, act)[0]);
    EXPECT_EQ(seen, legal[step]) << "after step " << step;
  }
}

// Given a flush of one line of two, and a drain. Expect that the other line is not durable.
TEST(SimPowerCut, AFlushIsOfItsLinesAlone) {
  const auto act = [](NodeMemory& memory) {
    memory.Store(0, 1);
    memory.Store(56, 1);
    memory.Store(64, 1);
    memory.Flush(8, 8);
    memory.Drain();  // step 4
  };
  std::set<uint64_t> beside;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const std::vector<uint64_t> left = WordsAfterCutAt(4, seed, 9, act);
    EXPECT_EQ(left[0], 1u);
    EXPECT_EQ(left[7], 1u) << "the same line";
    beside.insert(left[8]);
  }
  EXPECT_EQ(beside, (std::set<uint64_t>{0, 1}));
}

// Given a handler of four steps. Expect that it stops after the step at which the power is cut, and that the
// client hears that it may or may not have happened; after the last step, it may also hear that all is done.
TEST(SimPowerCut, TheHandlerStopsWhereItIs) {
  const auto act = [](NodeMemory& memory) {
    memory.Store(0, 1);
    memory.Flush(0, 8);
    memory.Drain();
    memory.Store(8, 1);
  };
  for (uint64_t step = 0; step < 4; ++step) {
    Result<Done> result = Done{};
    const std::vector<uint64_t> left = WordsAfterCutAt(step, 1, 2, act, &result);
    if (step < 3) {
      EXPECT_EQ(left[1], 0u);
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().code(), ErrorCode::kOutcomeUnknown);
    } else {
      EXPECT_TRUE(result.ok()) << result.error().ToString();
    }
    if (step >= 2) {
      EXPECT_EQ(left[0], 1u);
    }
  }
}

Task<Done> WriteAndAdd(Client& client, uint64_t times) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= times; ++i) {
    const std::array<uint64_t, 2> words = {i, i};
    co_await op.InOrder(Write(At(64), std::as_bytes(std::span(words))), Faa(At(128), 1));
  }
  co_return Done{};
}

// Given WRITEs and atomics of a client, and no handler. Expect that none of them is durable, and that a word
// has only values that it had.
TEST(SimPowerCut, WritesAndAtomicsOfClientsAreNotDurable) {
  std::set<uint64_t> words;
  std::set<uint64_t> counters;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    PowerCutRun run(Quiet(seed), [](NodeMemory&) {});
    ASSERT_TRUE(run.Do(WriteAndAdd(run.Connect(), 3)).ok());
    run.world.CutPower(kNode);
    words.insert(run.Word(At(64)));
    counters.insert(run.Word(At(128)));
  }
  EXPECT_EQ(words, (std::set<uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(counters, (std::set<uint64_t>{0, 1, 2, 3}));
}

Task<Done> WriteAndFlush(Client& client) {
  Op op(client, OpKind::kUpdate);
  const std::array bytes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  co_await op.InOrder(Write(At(70), bytes));
  co_await op.Call(kNode, kAct, "");
  co_return Done{};
}

// Given a client that WRITEs bytes that are no whole words, and then Calls a handler that flushes and drains
// their line. Expect that they survive: a flush covers what any client has stored.
TEST(SimPowerCut, AFlushCoversWhatClientsHaveStored) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    PowerCutRun run(Free(seed), [](NodeMemory& memory) {
      memory.Flush(64, 64);
      memory.Drain();
    });
    SimClient& client = run.Connect();
    ASSERT_TRUE(run.Do(WriteAndFlush(client)).ok());
    run.world.CutPower(kNode);
    EXPECT_EQ(run.Word(At(64)), 0x0201'0000'0000'0000u);
    EXPECT_EQ(run.Word(At(72)), 0x0000'0000'0005'0403u);
  }
}

Task<Done> AddMany(Client& client, uint64_t times) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < times; ++i) co_await op.InOrder(Faa(At(0), 1));
  co_return Done{};
}
Task<Done> CallMany(Client& client, uint64_t times) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < times; ++i) co_await op.Call(kNode, kAct, "");
  co_return Done{};
}

// Given a counter that clients raise, and handlers that make it durable and note in another word what they
// have found before. When the power is cut by chance. Expect that the counter never goes back behind what a
// handler had drained, though clients act between any two steps of it.
TEST(SimPowerCut, AWordNeverGoesBackBehindTheDrainedValue) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(1000); ++seed) {
    SimOptions options = Free(seed);
    options.chaos.power_cut = 96;
    options.chaos.most_power_cuts = 1;
    PowerCutRun run(options, [](NodeMemory& memory) {
      const uint64_t found = memory.Load(0);
      memory.Flush(0, 8);
      memory.Drain();
      memory.Store(64, found);  // not flushed: it may be older, and never newer
    });
    bool cut = false;
    uint64_t before = 0;
    run.world.set_on_power_up([&](NodeId node, std::span<std::byte> survived) {
      EXPECT_EQ(node, kNode);
      cut = true;
      std::array<uint64_t, 9> words{};
      std::memcpy(words.data(), survived.data(), sizeof words);
      EXPECT_GE(words[0], words[8]);
      EXPECT_LE(words[0], before);
      litmus.Saw(words[0] == before ? "all there" : "fallen back");
    });
    run.Start(AddMany(run.Connect(), 10));
    run.Start(AddMany(run.Connect(), 10));
    run.Start(CallMany(run.Connect(), 5));
    while (!cut) {
      before = run.Word(At(0)) + 1;  // the event may raise it before the cut
      if (!run.world.Step()) break;
    }
    if (!cut) litmus.Saw("no cut");
    run.Drain();
  }
  EXPECT_SEEN(litmus, "fallen back");
  EXPECT_SEEN(litmus, "no cut");
}

// Given a power cut, and a hook that says what the node shall begin with. Expect that clients of before are
// refused, and that a new one finds what the hook has left, which is durable.
TEST(SimPowerCut, ClientsAreServedWhenTheHookHasRun) {
  PowerCutRun run(Quiet(1), [](NodeMemory&) {});
  run.world.set_on_power_up([](NodeId, std::span<std::byte> survived) {
    const uint64_t fresh = 77;
    std::memcpy(survived.data(), &fresh, sizeof fresh);
  });
  SimClient& old = run.Connect();
  ASSERT_TRUE(run.Do(AddMany(old, 3)).ok());
  run.world.CutPower(kNode);
  const Result<Done> refused = run.Do(AddMany(old, 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(run.Word(At(0)), 77u);
  run.world.set_on_power_up(nullptr);
  run.world.CutPower(kNode);
  EXPECT_EQ(run.Word(At(0)), 77u);
  ASSERT_TRUE(run.Do(AddMany(run.Connect(), 1)).ok());
  EXPECT_EQ(run.Word(At(0)), 78u);
}

// Given chances of power cuts. Expect at most as many as allowed, none in a world that is not durable, and
// none when faults are stopped; and steps of handlers are counted.
TEST(SimPowerCut, TheyAreBoundedAndOnlyOfDurableNodes) {
  const auto play = [](bool durable, bool stopped) {
    SimOptions options = Free(3);
    options.chaos.power_cut = kAlways;
    options.chaos.most_power_cuts = 3;
    options.durable = durable;
    SimRun run(options);
    run.world.calls().Set(kAct, [](NodeMemory& memory, ClientId, std::string_view) {
      memory.Store(0, 1);
      memory.Flush(0, 100);
      memory.Drain();
      return std::string();
    });
    if (stopped) run.world.StopFaults();
    for (int client = 0; client < 10; ++client) {
      Result<Done> result = Done{};
      static_cast<void>(run.Do(CallOnce(run.Connect(), &result)));
    }
    EXPECT_EQ(run.world.flushed(), (FlushCounts{.lines = 20, .drains = 10}));
    if (stopped) {
      EXPECT_EQ(run.world.handler_steps(), durable ? 30u : 0u);
    }
    return run.world.power_cuts();
  };
  EXPECT_EQ(play(true, false), 3u);
  EXPECT_EQ(play(true, true), 0u);
  EXPECT_EQ(play(false, false), 0u);
}

// Given the same seed twice. Expect the same cut, with the same words left.
TEST(SimPowerCut, TheSeedDecidesWhatSurvives) {
  const auto act = [](NodeMemory& memory) {
    for (uint64_t word = 0; word < 32; ++word) memory.Store(word * 8, word + 1);
  };
  std::set<std::vector<uint64_t>> seen;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<uint64_t> once = WordsAfterCutAt(31, seed, 32, act);
    EXPECT_EQ(once, WordsAfterCutAt(31, seed, 32, act));
    seen.insert(once);
  }
  EXPECT_GT(seen.size(), 15u);
}

}  // namespace
}  // namespace farside::fabric::sim
