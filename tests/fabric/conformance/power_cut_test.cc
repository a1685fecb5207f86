// What "Persistence" in docs/memory-model.md says about power cuts: the simulator must be seen to use each of
// the freedoms, and to keep what is promised, which a model of it here computes in another way.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/fabric/conformance/cite.h"
#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

using conformance::Cite;

constexpr CallId kAct(1, 1);
constexpr NodeId kNode{0};

// What a handler does, step by step.
struct Step {
  enum class Kind : uint8_t { kStore, kFlush, kDrain };
  Kind kind;
  uint64_t offset = 0;
  uint64_t word = 0;
};

// Few words in three lines, so that all kinds of steps meet.
std::vector<Step> SomeSteps(Random& random) {
  std::vector<Step> steps;
  const uint64_t count = 3 + random.Below(12);
  for (uint64_t i = 1; i <= count; ++i) {
    const uint64_t offset = random.Below(3) * kLineBytes + random.Below(2) * 8;
    const uint64_t roll = random.Below(6);
    const Step::Kind kind = roll < 3   ? Step::Kind::kStore
                            : roll < 5 ? Step::Kind::kFlush
                                       : Step::Kind::kDrain;
    steps.push_back({kind, offset, i});
  }
  return steps;
}

void Play(NodeMemory& memory, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    switch (step.kind) {
      case Step::Kind::kStore: memory.Store(step.offset, step.word); break;
      case Step::Kind::kFlush: memory.Flush(step.offset + 3, 5); break;
      case Step::Kind::kDrain: memory.Drain(); break;
    }
  }
}

// What a word may be when the first steps have been done: what it was made durable with, and all since.
std::set<uint64_t> LegalValues(const std::vector<Step>& steps, size_t done, uint64_t offset) {
  size_t durable_since = 0;  // the number of steps of which the word has all
  std::optional<size_t> flushed_at;
  for (size_t i = 0; i < done; ++i) {
    if (steps[i].kind == Step::Kind::kFlush && steps[i].offset / kLineBytes == offset / kLineBytes)
      flushed_at = i;
    if (steps[i].kind == Step::Kind::kDrain && flushed_at.has_value()) durable_since = *flushed_at;
  }
  std::set<uint64_t> legal;
  uint64_t word = 0;
  for (size_t i = 0; i <= done; ++i) {
    if (i >= durable_since) legal.insert(word);
    if (i < done && steps[i].kind == Step::Kind::kStore && steps[i].offset == offset) word = steps[i].word;
  }
  return legal;
}

Task<Done> CallOnce(Client& client, std::optional<ErrorCode>& error) {
  Op op(client, OpKind::kUpdate);
  const auto called = co_await op.Call(kNode, kAct, "").Outcome();
  if (!called.ok()) error = called.error().code();
  co_return Done{};
}

SimOptions Durable(SimOptions options) {
  options.durable = true;
  return options;
}

// What stands in these words when the power was cut after a step of the handler.
std::array<uint64_t, 6> LeftAfterCutAt(size_t last, uint64_t seed, const std::vector<Step>& steps,
                                       const std::array<uint64_t, 6>& words) {
  SimOptions options = Durable(Quiet(seed));
  options.fault = Fault{.verb = last, .kind = FaultKind::kPowerCut};
  SimRun run(options);
  run.world.calls().Set(kAct, [&steps](NodeMemory& memory, ClientId, std::string_view) {
    Play(memory, steps);
    return std::string();
  });
  std::optional<ErrorCode> error;
  run.Start(CallOnce(run.Connect(), error));
  run.Drain();
  EXPECT_EQ(run.world.power_cuts(), 1u);
  EXPECT_EQ(error.has_value(), last + 1 < steps.size()) << "the last step ends the handler";
  std::array<uint64_t, 6> left{};
  for (size_t i = 0; i < words.size(); ++i) left[i] = run.Word(At(words[i]));
  return left;
}

// Given handlers of any steps, and a power cut after each of the steps. Expect that every word has a value
// that it may have, and none of later steps; and over many cuts that every such value occurs, in any subset
// of the words.
const Cite kSurvives("fabric/39", "flushed and drained survives a power cut");
const Cite kNoOlder("fabric/41", "never an older one, and never parts of two");
const Cite kSubset("freedom/20",
                   "any subset of words may survive a power cut; so may what was flushed and not");
const Cite kBetween("freedom/22", "between any two of its stores, flushes and drains");
TEST(FreedomToLosePower, EveryWordIsLeftWithAnyValueThatItMayHave_AndNoOther) {
  constexpr std::array<uint64_t, 6> kWords = {0, 8, 64, 72, 128, 136};
  constexpr uint64_t kMostSeeds = 3000;
  for (uint64_t script = 1; script <= Seeds(60); ++script) {
    Random random(script);
    const std::vector<Step> steps = SomeSteps(random);
    for (size_t last = 0; last < steps.size(); ++last) {
      SCOPED_TRACE("script " + std::to_string(script) + ", cut after step " + std::to_string(last));
      std::map<uint64_t, std::set<uint64_t>> legal;
      for (const uint64_t word : kWords) legal[word] = LegalValues(steps, last + 1, word);
      std::map<uint64_t, std::set<uint64_t>> seen;
      for (uint64_t seed = 1; seed <= kMostSeeds && seen != legal; ++seed) {
        const std::array<uint64_t, 6> left = LeftAfterCutAt(last, seed, steps, kWords);
        for (size_t i = 0; i < kWords.size(); ++i) {
          ASSERT_TRUE(legal[kWords[i]].contains(left[i])) << left[i] << " in word " << kWords[i];
          seen[kWords[i]].insert(left[i]);
        }
      }
      ASSERT_EQ(seen, legal);
    }
  }
}

Task<Done> WriteWords(Client& client, uint64_t times) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 1; i <= times; ++i) {
    const std::array<uint64_t, 2> words = {i, i};
    co_await op.InOrder(WriteObject(At(56), words), Faa(At(128), 1));
  }
  co_return Done{};
}
Task<Done> WriteThenCall(Client& client) {
  co_await WriteWords(client, 1);
  std::optional<ErrorCode> error;
  co_await CallOnce(client, error);
  EXPECT_EQ(error, std::nullopt);
  co_return Done{};
}

// Given trips of a client that have completed, and a power cut. Expect that its WRITEs and atomics are lost
// at times, in part or as a whole, and at times are not.
const Cite kLost("freedom/21",
                 "WRITEs and atomics of clients that have completed may be lost in a power cut");
TEST(FreedomToLosePower, WhatClientsStoreMayBeLost) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(400); ++seed) {
    SimRun run(Durable(Free(seed)));
    ASSERT_TRUE(run.Do(WriteWords(run.Connect(), 1)).ok());
    run.world.CutPower(kNode);
    litmus.Saw(std::to_string(run.Word(At(56))) + std::to_string(run.Word(At(64))) +
               std::to_string(run.Word(At(128))));
  }
  for (const std::string words : {"000", "001", "010", "011", "100", "101", "110", "111"})
    EXPECT_SEEN(litmus, words);
}

// Given the same, but a handler flushes a byte of each line, and drains. Expect that nothing is lost.
const Cite kCovers("fabric/40", "of whole lines, and covers everything that any client had stored in them");
TEST(FreedomToLosePower, AFlushCoversWhatClientsHaveStored) {
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    SimRun run(Durable(Free(seed)));
    run.world.calls().Set(kAct, [](NodeMemory& memory, ClientId, std::string_view) {
      memory.Flush(0, 65);
      memory.Flush(191, 1);
      memory.Drain();
      return std::string();
    });
    ASSERT_TRUE(run.Do(WriteThenCall(run.Connect())).ok());
    run.world.CutPower(kNode);
    ASSERT_EQ(run.Word(At(56)), 1u);
    ASSERT_EQ(run.Word(At(64)), 1u);
    ASSERT_EQ(run.Word(At(128)), 1u);
  }
}

// Given clients in the middle of WRITEs, atomics and a Call, and a power cut. Expect that nothing changes
// afterwards, that the clients are refused, and that a new one is served.
const Cite kRestarts("fabric/42",
                     "nothing that was in flight to it takes effect any more, and a handler that it");
TEST(FreedomToLosePower, APowerCutIsARestart) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(400); ++seed) {
    SimRun run(Durable(Free(seed)));
    run.world.calls().Set(kAct, [](NodeMemory& memory, ClientId, std::string_view) {
      for (uint64_t line = 4; line < 8; ++line) memory.Store(line * kLineBytes, 1);
      memory.Flush(4 * kLineBytes, 4 * kLineBytes);
      memory.Drain();
      memory.Store(8 * kLineBytes, 1);
      return std::string();
    });
    std::optional<ErrorCode> error;
    SimClient& caller = run.Connect();
    SimClient& writer = run.Connect();
    run.Start(CallOnce(caller, error));
    const Task<Done>& writes = run.Start(WriteWords(writer, 1000));
    for (uint64_t steps = seed % 30; steps > 0; --steps) run.world.Step();
    run.world.CutPower(kNode);
    const std::span<const std::byte> memory = run.world.memory(kNode);
    const std::vector<std::byte> left(memory.begin(), memory.end());
    run.Drain();
    ASSERT_TRUE(std::ranges::equal(left, memory)) << "something has landed after the cut";
    ASSERT_TRUE(writes.done());
    ASSERT_FALSE(run.Do(WriteWords(writer, 1)).ok());
    ASSERT_FALSE(run.Do(WriteWords(caller, 1)).ok());
    ASSERT_TRUE(run.Do(WriteWords(run.Connect(), 1)).ok());
    litmus.Saw(error.has_value() ? "cut" : "done");
  }
  EXPECT_SEEN(litmus, "cut");
  EXPECT_SEEN(litmus, "done");
}

}  // namespace
}  // namespace farside::fabric::sim
