// Fencing and node restarts in the simulated world, in the cases where several things happen at once.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

struct Outcomes {
  uint64_t done = 0;
  std::optional<ErrorCode> error;  // of the last trip that failed

  template <class T>
  void Note(const Result<T>& trip) {
    if (trip.ok()) {
      ++done;
    } else {
      error = trip.error().code();
    }
  }
};

Task<Done> FenceOn(Client& client, NodeId node, ClientId victim, Outcomes& outcomes) {
  Op op(client, OpKind::kMaintenance);
  const auto fenced = co_await op.InOrder(FenceVerb(node, victim)).Outcome();
  outcomes.Note(fenced);
  co_return Done{};
}
Task<Done> FenceAll(Client& client, ClientId victim, Outcomes& outcomes) {
  Op op(client, OpKind::kMaintenance);
  const auto fenced = co_await FenceEverywhere(op, victim).Outcome();
  outcomes.Note(fenced);
  co_return Done{};
}

Task<Done> WriteOn(Client& client, uint16_t node) {
  Op op(client, OpKind::kUpdate);
  co_await op.InOrder(WriteObject(Line(0, node), uint64_t{1}));
  co_return Done{};
}

// Given more nodes than a trip has verbs. Expect that the victim is cut off from each of them.
TEST(SimFencing, OnMoreNodesThanOneTripHasVerbs) {
  constexpr uint16_t kNodes = kMaxVerbsPerTrip + 3;
  for (uint16_t node = 0; node < kNodes; ++node) {
    SCOPED_TRACE("node " + std::to_string(node));
    SimRun run(Free(node + 1, std::vector<uint64_t>(kNodes, kLineBytes)));
    SimClient& victim = run.Connect();
    Outcomes fences;
    ASSERT_TRUE(run.Do(FenceAll(run.Connect(), victim.id(), fences)).ok());
    ASSERT_EQ(fences.done, 1u);
    ASSERT_FALSE(run.Do(WriteOn(victim, node)).ok());
    ASSERT_EQ(run.Word(Line(0, node)), 0u);
  }
}

Task<Done> WriteOnBothNodes(Client& client, Outcomes& outcomes) {
  Op op(client, OpKind::kUpdate);
  const uint64_t one = 1;
  const auto written =
      co_await op.Together(WriteObject(Line(0, 0), one), WriteObject(Line(0, 1), one)).Outcome();
  outcomes.Note(written);
  co_return Done{};
}

// Given a trip to two nodes, one of which cuts its client off or restarts. Expect that "nothing was changed"
// is claimed only if that is so on both.
TEST(SimFencing, ATripToTwoNodesThatOneRefuses_SaysWhetherItChangedTheOther) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(1000); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const bool restart = seed % 2 == 0;
    SimRun run(Free(seed, {4096, 4096}));
    SimClient& victim = run.Connect();
    Outcomes victims;
    Outcomes fencers;
    run.Start(WriteOnBothNodes(victim, victims));
    if (restart) {
      run.world.Step();
      run.world.RestartNode(NodeId{0}, /*keep_memory=*/true);
    } else {
      run.Start(FenceOn(run.Connect(), NodeId{0}, victim.id(), fencers));
    }
    run.Drain();
    const bool changed = run.Word(Line(0, 0)) != 0 || run.Word(Line(0, 1)) != 0;
    if (!victims.error.has_value()) {
      litmus.Saw("done");
    } else if (*victims.error == ErrorCode::kOutcomeUnknown) {
      litmus.Saw("unknown");
    } else {
      ASSERT_EQ(*victims.error, restart ? ErrorCode::kUnavailable : ErrorCode::kFenced);
      ASSERT_FALSE(changed);
    }
  }
  EXPECT_SEEN(litmus, "done");
  EXPECT_SEEN(litmus, "unknown");
}

// Given a client that fences itself. Expect that it ends, and that nothing of it lands afterwards.
TEST(SimFencing, AClientMayFenceItself) {
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    SimRun run(Free(seed, {4096, 4096}));
    SimClient& client = run.Connect();
    Outcomes outcomes;
    ASSERT_TRUE(run.Do(FenceAll(client, client.id(), outcomes)).ok());
    Outcomes later;
    ASSERT_TRUE(run.Do(WriteOnBothNodes(client, later)).ok());
    EXPECT_EQ(later.error, ErrorCode::kFenced);
    run.Drain();
    EXPECT_EQ(run.Word(Line(0, 0)), 0u);
    EXPECT_EQ(run.Word(Line(0, 1)), 0u);
  }
}

// Given two clients that fence each other on one node. Expect that exactly one of them succeeds.
TEST(SimFencing, OfTwoThatFenceEachOtherOnOneNode_OneSucceeds) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    SimRun run(Free(seed));
    SimClient& first = run.Connect();
    SimClient& second = run.Connect();
    Outcomes firsts;
    Outcomes seconds;
    run.Start(FenceAll(first, second.id(), firsts));
    run.Start(FenceAll(second, first.id(), seconds));
    run.Drain();
    ASSERT_EQ(firsts.done + seconds.done, 1u);
    EXPECT_EQ(firsts.done == 1 ? seconds.error : firsts.error, ErrorCode::kFenced);
    litmus.Saw(firsts.done == 1 ? "first" : "second");
  }
  EXPECT_SEEN(litmus, "first");
  EXPECT_SEEN(litmus, "second");
}

// Given the same on two nodes. Expect that never both succeed, and that also neither of them may.
TEST(SimFencing, OfTwoThatFenceEachOtherOnTwoNodes_PerhapsNeitherSucceeds) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(400); ++seed) {
    SimRun run(Free(seed, {4096, 4096}));
    SimClient& first = run.Connect();
    SimClient& second = run.Connect();
    Outcomes firsts;
    Outcomes seconds;
    run.Start(FenceAll(first, second.id(), firsts));
    run.Start(FenceAll(second, first.id(), seconds));
    run.Drain();
    litmus.Saw(std::to_string(firsts.done + seconds.done) + " of them");
  }
  EXPECT_SEEN(litmus, "0 of them");
  EXPECT_SEEN(litmus, "1 of them");
  EXPECT_NEVER_SEEN(litmus, "2 of them");
}

// ---- node restarts

// Given a client that was connected when a node restarted. When it posts something and is gone before that
// arrives, expect that it is refused all the same.
TEST(SimRestart, WhatAnOldClientPostsAndLeavesIsRefused) {
  for (const bool keep_memory : {false, true}) {
    for (uint64_t seed = 1; seed <= 50; ++seed) {
      SimRun run(Free(seed));
      SimClient& old = run.Connect();
      run.world.RestartNode(NodeId{0}, keep_memory);
      const uint64_t one = 1;
      {
        Op op(old, OpKind::kUpdate);
        op.Detach(Order::kInOrder, WriteObject(Line(0), one));
      }
      run.Disconnect(old.id());
      run.Drain();
      ASSERT_EQ(run.Word(Line(0)), 0u);
    }
  }
}

Task<Done> AddOn(Client& client, FarAddr at, Outcomes& outcomes) {
  Op op(client, OpKind::kUpdate);
  const auto added = co_await op.InOrder(Faa(at, 1)).Outcome();
  outcomes.Note(added);
  co_return Done{};
}

// Given a node that restarts between the trips of a client. Expect that the old client is refused for good
// and on every node, that a new one is served, and that the memory was kept or not, as asked.
TEST(SimRestart, OldClientsAreRefusedAndNewOnesServed) {
  for (const bool keep_memory : {false, true}) {
    SimRun run(Free(7, {4096, 4096}));
    SimClient& old = run.Connect();
    Outcomes before;
    ASSERT_TRUE(run.Do(AddOn(old, Line(0), before)).ok());
    ASSERT_TRUE(run.Do(AddOn(old, Line(0, 1), before)).ok());
    ASSERT_EQ(before.done, 2u);
    run.world.RestartNode(NodeId{0}, keep_memory);
    EXPECT_EQ(run.Word(Line(0)), keep_memory ? 1u : 0u);
    EXPECT_EQ(run.Word(Line(0, 1)), 1u);
    for (uint16_t node : {0, 1, 0}) {
      Outcomes after;
      ASSERT_TRUE(run.Do(AddOn(old, Line(0, node), after)).ok());
      EXPECT_EQ(after.error, ErrorCode::kUnavailable);
    }
    Outcomes fresh;
    ASSERT_TRUE(run.Do(AddOn(run.Connect(), Line(0), fresh)).ok());
    EXPECT_EQ(fresh.done, 1u);
    EXPECT_EQ(run.Word(Line(0)), keep_memory ? 2u : 1u);
  }
}

Task<Done> CallOnce(Client& client, Outcomes& outcomes) {
  Op op(client, OpKind::kUpdate);
  const auto called = co_await op.Call(NodeId{0}, CallId(1, 1), "").Outcome();
  outcomes.Note(called);
  co_return Done{};
}

// Given a node whose memory survives, and that restarts in the middle of a handler. Expect any number of the
// handler's first stores: the node's CPU stopped where it was.
TEST(SimRestart, CutsAHandlerAtAnyStore) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(400); ++seed) {
    SimRun run(Free(seed));
    run.world.calls().Set(CallId(1, 1), [](NodeMemory& memory, ClientId, std::string_view) {
      for (uint64_t line = 0; line < 4; ++line) memory.Store(line * kLineBytes, 1);
      return std::string();
    });
    Outcomes outcomes;
    run.Start(CallOnce(run.Connect(), outcomes));
    for (uint64_t steps = seed % 7; steps > 0; --steps) run.world.Step();
    run.world.RestartNode(NodeId{0}, /*keep_memory=*/true);
    std::string stores;
    for (uint64_t line = 0; line < 4; ++line) stores += run.Word(Line(line)) != 0 ? '1' : '.';
    run.Drain();
    for (uint64_t line = 0; line < 4; ++line) {
      ASSERT_EQ(run.Word(Line(line)) != 0, stores[line] == '1') << "something landed after the restart";
    }
    if (outcomes.done == 1) {
      ASSERT_EQ(stores, "1111");
    } else {
      litmus.Saw(stores);
      ASSERT_EQ(outcomes.error, stores == "...." && *outcomes.error == ErrorCode::kUnavailable
                                    ? ErrorCode::kUnavailable
                                    : ErrorCode::kOutcomeUnknown);
    }
  }
  EXPECT_SEEN(litmus, "....");
  EXPECT_SEEN(litmus, "1...");
  EXPECT_SEEN(litmus, "11..");
  EXPECT_SEEN(litmus, "111.");
}

// Given a client that is fenced in the middle of its Call. Expect all stores of the handler or none, and none
// after the FENCE has completed: the node's CPU does not stop, so it is waited for.
TEST(SimFencing, WaitsForTheHandlerOfTheVictim) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(300); ++seed) {
    SimRun run(Free(seed));
    run.world.calls().Set(CallId(1, 1), [](NodeMemory& memory, ClientId, std::string_view) {
      for (uint64_t line = 0; line < 4; ++line) memory.Store(line * kLineBytes, 1);
      return std::string();
    });
    SimClient& victim = run.Connect();
    Outcomes calls;
    Outcomes fences;
    run.Start(CallOnce(victim, calls));
    Task<Done>& fence = run.Start(FenceAll(run.Connect(), victim.id(), fences));
    ASSERT_TRUE(run.Finish(fence));
    std::string stores;
    for (uint64_t line = 0; line < 4; ++line) stores += run.Word(Line(line)) != 0 ? '1' : '.';
    ASSERT_TRUE(stores == "1111" || stores == "....") << stores;
    run.Drain();
    for (uint64_t line = 0; line < 4; ++line) ASSERT_EQ(run.Word(Line(line)) != 0, stores[line] == '1');
    litmus.Saw(stores);
  }
  EXPECT_SEEN(litmus, "1111");
  EXPECT_SEEN(litmus, "....");
}

}  // namespace
}  // namespace farside::fabric::sim
