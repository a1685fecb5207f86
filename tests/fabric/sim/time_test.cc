// Virtual time: timers, delays and sleeping clients.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/sim_run.h"

namespace farside::fabric::sim {
namespace {

using namespace std::chrono_literals;

Task<Done> PauseAndNote(Client& client, Nanos duration, std::vector<Nanos>& woken) {
  Op op(client, OpKind::kMaintenance);
  co_await op.Pause(duration);
  woken.push_back(client.Now());
  co_return Done{};
}

// Given timers set in the wrong order. Expect that they fire in the order of their times, never early, and
// that the world does not walk through the time in between.
TEST(SimTime, TimersFireInOrderAndTimeJumps) {
  SimRun run(Quiet(1));
  SimClient& client = run.Connect();
  std::vector<Nanos> woken;
  for (Nanos duration : {Nanos(3s), Nanos(1s), Nanos(3600s), Nanos(2s)}) {
    run.Start(PauseAndNote(client, duration, woken));
  }
  run.Drain();
  ASSERT_EQ(woken.size(), 4u);
  EXPECT_GE(woken[0], 1s);
  EXPECT_GE(woken[1], 2s);
  EXPECT_GE(woken[2], 3s);
  EXPECT_GE(woken[3], 3600s);
  EXPECT_LT(woken[3], 3601s);
  EXPECT_LT(run.world.events(), 20u);
}

// Given a world in which nothing is on its way. Expect that a step says so, for ever.
TEST(SimTime, AnIdleWorldSaysSo) {
  SimRun run(Quiet(1));
  SimClient& client = run.Connect();
  EXPECT_FALSE(run.world.Step());
  EXPECT_FALSE(client.Poll());
  std::vector<Nanos> woken;
  ASSERT_TRUE(run.Do(PauseAndNote(client, 1us, woken)).ok());
  EXPECT_FALSE(run.world.Step());
}

// Given a timer whose waiter is destroyed. Expect that it never fires.
TEST(SimTime, AnAbandonedTimerDoesNotFire) {
  SimRun run(Quiet(1));
  SimClient& client = run.Connect();
  std::vector<Nanos> woken;
  run.Drop(run.Start(PauseAndNote(client, 1ms, woken)));
  run.Start(PauseAndNote(client, 2ms, woken));
  run.Drain();
  ASSERT_EQ(woken.size(), 1u);
  EXPECT_GE(woken[0], 2ms);
}

// Given a client that crashes while it waits for a timer. Expect that nothing of it runs any more, also after
// its tasks and itself are gone and another client stands in the same memory.
TEST(SimTime, TimersOfACrashedClientDoNotFire) {
  SimRun run(Quiet(1));
  std::vector<Nanos> woken;
  SimClient& client = run.Connect();
  const ClientId id = client.id();
  Task<Done>& task = run.Start(PauseAndNote(client, 1ms, woken));
  run.world.Crash(id);
  run.Drop(task);
  run.Disconnect(id);
  run.Start(PauseAndNote(run.Connect(), 2ms, woken));
  run.Drain();
  EXPECT_EQ(woken.size(), 1u);
}

// ---- sleep

Task<Done> AddUntil(Client& client, FarAddr at, uint64_t rounds, std::vector<Nanos>& resumed) {
  Op op(client, OpKind::kUpdate);
  for (uint64_t i = 0; i < rounds; ++i) {
    const auto added = co_await op.InOrder(Faa(at, 1)).Outcome();
    resumed.push_back(client.Now());
    if (!added.ok()) co_return added.error();
  }
  co_return Done{};
}

// Given a client that sleeps while a trip of it is in flight. Expect that the trip takes effect, but that the
// client hears of it only when it wakes; a shorter sleep does not wake it earlier.
TEST(SimSleep, TheTripLandsButTheClientDoesNotHear) {
  SimRun run(Quiet(1));
  SimClient& client = run.Connect();
  std::vector<Nanos> resumed;
  std::vector<Nanos> woken;
  run.Start(AddUntil(client, Line(0), 2, resumed));
  run.Start(PauseAndNote(client, 1us, woken));
  run.world.Sleep(client.id(), 10ms);
  run.world.Sleep(client.id(), 1ms);
  while (run.world.Now() < 1ms && run.world.Step()) continue;
  EXPECT_EQ(run.Word(Line(0)), 1u);
  run.Drain();
  EXPECT_EQ(run.Word(Line(0)), 2u);
  ASSERT_EQ(resumed.size(), 2u);
  EXPECT_GE(resumed[0], 10ms);
  ASSERT_EQ(woken.size(), 1u);
  EXPECT_GE(woken[0], 10ms);
}

// Given a client that sleeps and a connection that breaks meanwhile. Expect that it hears of that, too, only
// when it wakes.
TEST(SimSleep, AClientAsleepDoesNotHearThatItsConnectionBroke) {
  for (uint64_t seed = 1; seed <= Seeds(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimOptions options = Quiet(seed);
    options.chaos.lose_completion = kOneIn / 2;
    options.chaos.delay_verb = kOneIn / 2;
    SimRun run(options);
    SimClient& client = run.Connect();
    run.world.Sleep(client.id(), 10ms);
    std::vector<Nanos> resumed;
    run.Start(AddUntil(client, Line(0), 3, resumed));
    run.Drain();
    ASSERT_FALSE(resumed.empty());
    ASSERT_GE(resumed[0], 10ms);
  }
}

// Given a client that falls asleep, is fenced, and wakes. Expect that it then hears that it was fenced, or
// first of the trip that had landed before.
TEST(SimSleep, AFencedSleeperHearsOfItWhenItWakes) {
  SimRun run(Quiet(1));
  SimClient& sleeper = run.Connect();
  std::vector<Nanos> resumed;
  Task<Done>& task = run.Start(AddUntil(sleeper, Line(0), 100, resumed));
  while (run.Word(Line(0)) < 3) run.world.Step();
  run.world.Sleep(sleeper.id(), 10ms);
  {
    SimClient& fencer = run.Connect();
    Op op(fencer, OpKind::kMaintenance);
    op.Detach(Order::kInOrder, FenceVerb(NodeId{0}, sleeper.id()));
  }
  run.Drain();
  ASSERT_TRUE(task.done());
  const Result<Done> end = task.TakeResult();
  ASSERT_FALSE(end.ok());
  EXPECT_EQ(end.error().code(), ErrorCode::kFenced);
  EXPECT_LE(run.Word(Line(0)), 4u);
  EXPECT_GE(run.world.Now(), 10ms);
}

// Given clients that sleep by chance, and no other delay. Expect that at times a verb that was posted long
// before the sleep ends lands only after it: the client stopped before its device had it.
TEST(SimSleep, ByChanceAlsoKeepsVerbsBack) {
  Litmus litmus;
  for (uint64_t seed = 1; seed <= Seeds(2000); ++seed) {
    SimOptions options = Quiet(seed);
    options.chaos.sleep = 64;
    SimRun run(options);
    std::vector<Nanos> resumed;
    run.Start(AddUntil(run.Connect(), Line(0), 1, resumed));
    while (run.Word(Line(0)) == 0) ASSERT_TRUE(run.world.Step());
    litmus.Saw(run.world.Now() > 100us ? "late" : "soon");
    run.Drain();
  }
  EXPECT_SEEN(litmus, "soon");
  EXPECT_SEEN(litmus, "late");
}

}  // namespace
}  // namespace farside::fabric::sim
