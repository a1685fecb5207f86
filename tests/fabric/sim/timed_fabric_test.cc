// The timed fabric beside its figures: it can be repeated, fences are final, regions may be large.
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/support/timed_run.h"

namespace farside::fabric::sim {
namespace {

// ---- it can be repeated

// Some of everything.
Task<Done> Muddle(Client& client, uint64_t seed, uint64_t& digest) {
  Op op(client, OpKind::kUpdate);
  Random random(seed);
  std::array<uint64_t, 40> block{};
  for (int i = 0; i < 60; ++i) {
    block.fill(random.Next());
    const FarAddr word = At(random.Below(256) * 8, static_cast<uint16_t>(random.Below(2)));
    const FarAddr other = At(random.Below(256) * 8, Index(word.node));
    switch (random.Below(6)) {
      case 0: co_await op.InOrder(Cas(word, 0, 1), Fenced(Read<uint64_t>(other))); break;
      case 1: co_await op.InOrder(WriteObject(word, block), Cas(other, 0, 2)); break;
      case 2: co_await op.Together(Faa(word, 1), Faa(At(8, 1), 1), Faa(At(8, 0), 1)); break;
      case 3: op.Detach(Order::kInOrder, WriteObject(word, block), Faa(other, 1)); break;
      case 4: co_await op.Pause(Nanos(random.Below(20'000))); break;
      default: {
        const auto words = co_await op.InOrder(Read<std::array<uint64_t, 40>>(word));
        for (const uint64_t read : words) digest = digest * 31 + read;
        break;
      }
    }
    digest = digest * 31 + static_cast<uint64_t>(client.Now().count());
  }
  co_return Done{};
}

struct Replay {
  std::vector<std::byte> memory;
  uint64_t digest = 0;  // of what every client has read, and when
  uint64_t events = 0;
  Nanos now{0};
  friend bool operator==(const Replay&, const Replay&) = default;
};

Replay RunOnce(uint64_t seed, Nanos jitter) {
  TimedOptions options{.seed = seed, .region_bytes = {4096, 4096}, .compute_nodes = 3};
  options.model.jitter = jitter;
  TimedRun run(options);
  Replay replay;
  for (uint64_t i = 0; i < 40; ++i) run.Start(Muddle(run.Connect(), i, replay.digest));
  run.Drain();
  for (const uint16_t node : {0, 1}) {
    const auto memory = run.world().memory(NodeId{node});
    replay.memory.insert(replay.memory.end(), memory.begin(), memory.end());
  }
  replay.events = run.world().events();
  replay.now = run.world().Now();
  return replay;
}

// Given the same seed and model twice. Expect the same run, to the nanosecond.
TEST(TimedFabric, TheSameSeedGivesTheSameRun) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Replay first = RunOnce(seed, 50ns);
    EXPECT_GT(first.now, 100us);
    EXPECT_EQ(RunOnce(seed, 50ns), first);
  }
}

// Given different seeds. Expect different runs if there is jitter, and the same without: nothing else is
// drawn.
TEST(TimedFabric, TheSeedDecidesTheJitterAndNothingElse) {
  EXPECT_NE(RunOnce(1, 50ns), RunOnce(2, 50ns));
  EXPECT_EQ(RunOnce(1, 0ns), RunOnce(2, 0ns));
}

// ---- order

Task<Done> RaiseBoth(Client& client, uint64_t rounds) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < rounds; ++i) co_await op.InOrder(Faa(Line(0), 1), Faa(Line(9), 1));
  co_return Done{};
}
Task<Done> ReadBoth(Client& client, uint64_t rounds, uint64_t& different) {
  Op op(client, OpKind::kSearch);
  uint64_t last = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto [first, second] = co_await op.InOrder(Read<uint64_t>(Line(0)), Read<uint64_t>(Line(9)));
    EXPECT_EQ(first, second);
    if (first != last) ++different;
    last = first;
  }
  co_return Done{};
}

// Given trips that change two words, and trips that read them. Expect that readers find them equal, since a
// round takes effect at one instant, and find many states.
TEST(TimedFabric, ARoundTakesEffectAtOneInstant) {
  TimedRun run({.region_bytes = {4096}, .compute_nodes = 2});
  uint64_t different = 0;
  for (int i = 0; i < 5; ++i) {
    run.Start(RaiseBoth(run.Connect(), 100));
    run.Start(ReadBoth(run.Connect(), 100, different));
  }
  run.Drain();
  EXPECT_GT(different, 100u);
}

// ---- fencing

Task<Done> AddForever(Client& client, std::vector<ErrorCode>& errors) {
  Op op(client, OpKind::kUpdate);
  while (errors.size() < 3) {
    op.Detach(Order::kInOrder, Faa(Line(1), 1));
    const auto added = co_await op.InOrder(Faa(Line(0), 1), Fenced(Faa(Line(2), 1))).Outcome();
    if (!added.ok()) errors.push_back(added.error().code());
  }
  co_return Done{};
}
Task<Done> Fence(Client& client, ClientId victim) {
  Op op(client, OpKind::kMaintenance);
  co_await FenceEverywhere(op, victim);
  co_return Done{};
}

// Given a client that changes words without pause, and is fenced after some time. Expect that nothing changes
// from the moment at which the fence has completed, whatever was on its way, and that the victim hears of it.
TEST(TimedFabric, NothingOfAFencedClientLandsLater) {
  std::map<ErrorCode, int> first_errors;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    TimedRun run({.seed = seed, .region_bytes = {4096}, .compute_nodes = 2});
    Client& victim = run.Connect();
    Client& fencer = run.Connect();
    std::vector<ErrorCode> errors;
    run.Start(AddForever(victim, errors));
    run.RunUntil(20us + Nanos(seed * 137));
    ASSERT_TRUE(run.Do(Fence(fencer, victim.id())).ok());
    const auto memory = run.world().memory(NodeId{0});
    const std::vector<std::byte> before(memory.begin(), memory.end());
    EXPECT_NE(before, std::vector<std::byte>(before.size()));
    run.Drain();
    EXPECT_EQ(std::vector<std::byte>(memory.begin(), memory.end()), before);
    ASSERT_EQ(errors.size(), 3u);
    ++first_errors[errors[0]];
    EXPECT_EQ(errors[1], ErrorCode::kFenced);
    EXPECT_EQ(errors[2], ErrorCode::kFenced);
    EXPECT_FALSE(victim.HasUnawaited());
  }
  EXPECT_GT(first_errors[ErrorCode::kFenced], 0);
  EXPECT_GT(first_errors[ErrorCode::kOutcomeUnknown], 0);
}

Task<Done> FenceOnNode(Client& client, NodeId node, ClientId victim) {
  Op op(client, OpKind::kMaintenance);
  co_await op.InOrder(FenceVerb(node, victim));
  co_return Done{};
}
Task<Done> AddTo(Client& client, FarAddr at) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(Faa(at, 1));
  co_return Done{};
}

// Given a client that was fenced on one node only. Expect that it is broken for the other as well, from the
// moment at which it has heard of it and not before.
TEST(TimedFabric, AClientThatWasFencedAnywhereIsBrokenEverywhere) {
  TimedRun run({.region_bytes = {4096, 4096}});
  Client& victim = run.Connect();
  ASSERT_TRUE(run.Do(FenceOnNode(run.Connect(), NodeId{0}, victim.id())).ok());
  EXPECT_TRUE(run.Do(AddTo(victim, Line(0, 1))).ok());
  for (const uint16_t node : {0, 1}) {
    const Result<Done> added = run.Do(AddTo(victim, Line(0, node)));
    ASSERT_FALSE(added.ok());
    EXPECT_EQ(added.error().code(), ErrorCode::kFenced);
  }
  run.Drain();
  for (const uint16_t node : {0, 1}) {
    uint64_t word = 0;
    std::memcpy(&word, run.world().memory(NodeId{node}).data(), sizeof(word));
    EXPECT_EQ(word, node);
  }
}

Task<Done> DetachOne(Client& client) {
  Op op(client, OpKind::kUpdate);
  op.Detach(Order::kInOrder, Faa(Line(0), 1));
  co_return Done{};
}

// Given a client that goes away with a trip in flight. Expect that the trip lands, and that nothing touches
// the client any more (which the sanitizers watch).
TEST(TimedFabric, TripsOutliveTheirClients) {
  TimedRun run({.region_bytes = {4096}});
  auto leaves = std::move(*run.world().Connect());
  ASSERT_TRUE(run.Do(DetachOne(*leaves)).ok());
  leaves.reset();
  run.Drain();
  uint64_t word = 0;
  std::memcpy(&word, run.world().memory(NodeId{0}).data(), sizeof(word));
  EXPECT_EQ(word, 1u);
}

// ---- shape

Task<Done> Touch(Client& client, uint64_t bytes) {
  Op op(client, OpKind::kUpdate);
  const uint64_t last = bytes - 8;
  co_await op.InOrder(Faa(At(last), 7), Faa(At(bytes / 2), 7));
  const auto word = co_await op.InOrder(Read<uint64_t>(At(last)));
  EXPECT_EQ(word, 7u);
  const auto outside = co_await op.InOrder(Faa(At(bytes), 1)).Outcome();
  EXPECT_FALSE(outside.ok());
  co_return Done{};
}

// Given a region far larger than what is used of it. Expect that only what is touched takes memory (or this
// would not end well), and that bounds are kept.
TEST(TimedFabric, RegionsMayBeFarLargerThanWhatIsUsed) {
  constexpr uint64_t kBytes = uint64_t{8} << 30;
  TimedRun run({.region_bytes = {kBytes}});
  EXPECT_TRUE(run.Do(Touch(run.Connect(), kBytes)).ok());
}

// Given options that make no cluster. Expect that they are refused.
TEST(TimedFabric, RefusesWhatNoClusterIsLike) {
  NicModel no_rate;
  no_rate.atomics_per_second = 0;
  NicModel backwards;
  backwards.round_trip = -1ns;
  const std::vector<TimedOptions> wrong = {
      {.region_bytes = {}}, {.region_bytes = {100}},
      {.compute_nodes = 0}, {.compute_nodes = 2, .colocated = true},
      {.model = no_rate},   {.model = backwards},
  };
  for (const TimedOptions& options : wrong) {
    const auto opened = TimedFabric::Open(options);
    ASSERT_FALSE(opened.ok());
    EXPECT_EQ(opened.error().code(), ErrorCode::kInvalidArgument) << opened.error().ToString();
  }

  TimedRun run({.compute_nodes = 2});
  EXPECT_FALSE(run.world().Connect(2).ok());
  EXPECT_EQ(dynamic_cast<TimedClient&>(run.Connect(1)).compute_node(), 1u);
}

// Given the model. Expect that every figure has a name and a unit, each once, and the defaults of the
// documentation.
TEST(TimedFabric, TheModelTellsItsFigures) {
  std::map<std::string, std::pair<uint64_t, std::string>> figures;
  for (const ModelFigure& figure : FiguresOf(NicModel())) {
    EXPECT_TRUE(figures.emplace(figure.name, std::pair(figure.value, figure.unit)).second) << figure.name;
  }
  EXPECT_EQ(figures.size(), 15u);
  EXPECT_EQ(figures["round_trip"], std::pair(uint64_t{2000}, std::string("ns")));
  EXPECT_EQ(figures["bits_per_second"], std::pair(uint64_t{100'000'000'000}, std::string("bit/s")));
  EXPECT_EQ(figures["flush_line"], std::pair(uint64_t{30}, std::string("ns")));
  EXPECT_EQ(figures["drain"], std::pair(uint64_t{60}, std::string("ns")));
}

}  // namespace
}  // namespace farside::fabric::sim
