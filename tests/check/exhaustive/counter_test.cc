// A counter in one word of far memory, incremented by several clients: all interleavings of their verbs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "check/exhaustive/actor.h"
#include "check/exhaustive/explorer.h"
#include "fabric/op.h"
#include "fabric/service.h"

namespace farside::check {
namespace {

using fabric::Cas;
using fabric::Faa;
using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::Read;
using fabric::WriteObject;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr FarAddr kCounter(NodeId{0}, 0);
constexpr int kAttempts = 8;

Task<Outcome> IncrementByCas(Actor& self) {
  Op op(self.client(), OpKind::kUpdate);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t seen = co_await op.InOrder(Read<uint64_t>(kCounter));
    const uint64_t old = co_await op.InOrder(Cas(kCounter, seen, seen + 1));
    if (old == seen) co_return Outcome(Counted{seen + 1});
  }
  co_return Error(ErrorCode::kContended, "others were always faster");
}

Task<Outcome> IncrementByWrite(Actor& self) {
  Op op(self.client(), OpKind::kUpdate);
  const uint64_t seen = co_await op.InOrder(Read<uint64_t>(kCounter));
  const uint64_t sum = seen + 1;
  co_await op.InOrder(WriteObject(kCounter, sum));
  co_return Outcome(Counted{sum});
}

Task<Outcome> IncrementByFaa(Actor& self) {
  Op op(self.client(), OpKind::kUpdate);
  const uint64_t old = co_await op.InOrder(Faa(kCounter, 1));
  co_return Outcome(Counted{old + 1});
}

// Takes a lost completion for one that did not happen.
Task<Outcome> IncrementBlindly(Actor& self) {
  Result<Outcome> sum = co_await IncrementByFaa(self).Outcome();
  if (sum.ok()) co_return *sum;
  self.Reconnect();
  Result<Outcome> again = co_await IncrementByFaa(self).Outcome();
  co_return again;
}

Task<Outcome> GetCounter(Actor& self) {
  Op op(self.client(), OpKind::kSearch);
  const uint64_t value = co_await op.InOrder(Read<uint64_t>(kCounter));
  if (value == 0) co_return Outcome(Found{});
  std::string bytes(8, '\0');
  StoreU64(reinterpret_cast<std::byte*>(bytes.data()), value);
  co_return Outcome(Found{bytes});
}

using Increment = Task<Outcome> (*)(Actor& self);

Task<Done> IncrementTimes(Actor& self, Increment increment, int times) {
  for (int i = 0; i < times; ++i) co_await Recorded(self, Call::Increment("n"), increment(self));
  co_return Done{};
}

Task<Done> GetOnce(Actor& self) { co_return co_await Recorded(self, Call::Get("n"), GetCounter(self)); }

Participant Incrementing(Increment increment, int times) {
  return {.program = [=](Actor& self) { return IncrementTimes(self, increment, times); }};
}

Scenario Counter(std::vector<Participant> participants) {
  Scenario scenario;
  scenario.region_bytes = 8;
  scenario.participants = std::move(participants);
  return scenario;
}

TEST(ExhaustiveCounter, ThreeClientsIncrementTwiceByCas_AllInterleavingsAreLinearizable) {
  // Given three clients that increment a counter twice each by READ and CAS, and one that reads it in the end
  Scenario scenario = Counter({Incrementing(IncrementByCas, 2),
                               Incrementing(IncrementByCas, 2),
                               Incrementing(IncrementByCas, 2),
                               {.program = GetOnce, .phase = 1}});
  scenario.final_check = [](std::span<const std::byte> region) -> std::optional<std::string> {
    if (LoadU64(region.data()) == 6) return std::nullopt;
    return "the counter is not 6";
  };
  // When all interleavings are explored
  const Exploration found = Explore(scenario);
  // Expect that nothing is wrong, and that there were many of them
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
  EXPECT_GT(found.states, 10'000u);
  EXPECT_GT(found.states, found.runs);
}

TEST(ExhaustiveCounter, TwoClientsIncrementByReadAndWrite_LostUpdateIsFoundWithAShortTrace) {
  // Given two clients that increment a counter by READ and WRITE
  const Scenario scenario = Counter({Incrementing(IncrementByWrite, 2), Incrementing(IncrementByWrite, 2)});
  // When all interleavings are explored
  const Exploration found = Explore(scenario);
  // Expect the shortest way to a lost update, step by step
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
  EXPECT_THAT(found.trace, ElementsAre("client 1 begins Increment(n, 1)",  //
                                       "client 1 READ 0x0 gives 0x0",      //
                                       "client 2 begins Increment(n, 1)",  //
                                       "client 2 READ 0x0 gives 0x0",      //
                                       "client 1 WRITE 0x0 stores 0x1",    //
                                       "client 1 ends Increment(n, 1) -> #1",
                                       "client 2 WRITE 0x0 stores 0x1",  //
                                       "client 2 ends Increment(n, 1) -> #1"));
  EXPECT_THAT(found.chart, HasSubstr("client 2  Increment(n, 1) -> #1"));
}

TEST(ExhaustiveCounter, LostUpdate_IsFoundAgainByItsSchedule) {
  // Given a violation
  const Scenario scenario = Counter({Incrementing(IncrementByWrite, 2), Incrementing(IncrementByWrite, 2),
                                     Incrementing(IncrementByCas, 1)});
  const Exploration found = Explore(scenario);
  ASSERT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
  // When its schedule is replayed, and the exploration repeated
  const Exploration replayed = Replay(scenario, found.schedule);
  const Exploration repeated = Explore(scenario);
  // Expect the same bytes
  EXPECT_EQ(replayed.conclusion, found.conclusion);
  EXPECT_EQ(replayed.what, found.what);
  EXPECT_EQ(replayed.trace, found.trace);
  EXPECT_EQ(replayed.chart, found.chart);
  EXPECT_EQ(repeated.ToString(), found.ToString());
}

TEST(ExhaustiveCounter, ScheduleOfAnotherScenario_IsRefused) {
  const Scenario scenario = Counter({Incrementing(IncrementByCas, 1)});
  const Exploration replayed = Replay(scenario, {0, 7});
  EXPECT_EQ(replayed.conclusion, Conclusion::kUnfit);
  EXPECT_THAT(replayed.what, HasSubstr("does not fit"));
}

TEST(ExhaustiveCounter, MoreStatesThanAllowed_IsReportedAsALimit) {
  // Given a scenario with more states than it may have
  Scenario scenario = Counter({Incrementing(IncrementByCas, 2), Incrementing(IncrementByCas, 2)});
  scenario.max_states = 100;
  // When it is explored
  const Exploration found = Explore(scenario);
  // Expect no claim that nothing is wrong
  EXPECT_EQ(found.conclusion, Conclusion::kLimit) << found.ToString();
  EXPECT_EQ(found.states, 100u);
}

TEST(ExhaustiveCounter, LostCompletionIsReported_MayHaveHappenedOrNot) {
  // Given a client that may lose a completion and says so, and one that reads the counter in the end
  Participant careful = Incrementing(IncrementByFaa, 1);
  careful.may_lose_completion = true;
  const Scenario scenario = Counter({careful, {.program = GetOnce}, {.program = GetOnce, .phase = 1}});
  // When all interleavings are explored
  const Exploration found = Explore(scenario);
  // Expect that nothing is wrong
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

TEST(ExhaustiveCounter, LostCompletionIsRetriedBlindly_CountsTwice) {
  // Given a client that increments again after it has lost a completion
  Participant blind = Incrementing(IncrementBlindly, 1);
  blind.may_lose_completion = true;
  const Scenario scenario = Counter({blind});
  // When all interleavings are explored
  const Exploration found = Explore(scenario);
  // Expect that one increment counts twice
  EXPECT_EQ(found.conclusion, Conclusion::kNotLinearizable) << found.ToString();
  EXPECT_THAT(found.trace, ElementsAre("client 1 begins Increment(n, 1)",                 //
                                       "client 1 loses the completion of its next trip",  //
                                       "client 1 (late) FAA 0x0 adds 0x1 to 0x0",         //
                                       "client 1 FAA 0x0 adds 0x1 to 0x1",                //
                                       "client 1 ends Increment(n, 1) -> #2"));
}

TEST(ExhaustiveCounter, WriteToAWordThatOthersCas_IsSwallowed) {
  // Given a client that resets the counter by a WRITE while another one increments it by CAS
  struct Programs {
    static Task<Outcome> Reset(Actor& self) {
      Op op(self.client(), OpKind::kUpdate);
      const uint64_t hundred = 100;
      co_await op.InOrder(WriteObject(kCounter, hundred));
      co_return Outcome(Stored{});
    }
    static Task<Done> ResetOnce(Actor& self) {
      static constexpr std::string_view kHundred("d\0\0\0\0\0\0\0", 8);
      co_return co_await Recorded(self, Call::Put("n", kHundred), Reset(self));
    }
  };
  Scenario scenario = Counter(
      {Incrementing(IncrementByCas, 1), {.program = Programs::ResetOnce}, {.program = GetOnce, .phase = 1}});
  // When devices may store back the word of an atomic late
  const Exploration lossy = Explore(scenario);
  // Expect that the WRITE is lost; and on kinder devices, that it is not
  EXPECT_EQ(lossy.conclusion, Conclusion::kNotLinearizable) << lossy.ToString();
  EXPECT_THAT(lossy.ToString(), HasSubstr("but is lost"));
  scenario.freedoms.lossy_writes = false;
  const Exploration kind = Explore(scenario);
  EXPECT_EQ(kind.conclusion, Conclusion::kNothing) << kind.ToString();
}

TEST(ExhaustiveCounter, BrokenInvariant_IsFound) {
  // Given an invariant that the third of three increments breaks
  Scenario scenario = Counter({Incrementing(IncrementByFaa, 2), Incrementing(IncrementByFaa, 1)});
  scenario.invariant = [](std::span<const std::byte> region) -> std::optional<std::string> {
    if (LoadU64(region.data()) < 3) return std::nullopt;
    return "the counter is 3";
  };
  // When all interleavings are explored
  const Exploration found = Explore(scenario);
  // Expect that it is reported where it happens
  EXPECT_EQ(found.conclusion, Conclusion::kInvariantBroken);
  EXPECT_EQ(found.what, "the counter is 3");
  EXPECT_EQ(found.schedule.size(), 3u);
}

TEST(ExhaustiveCounter, ProgramThatRemembersEarlierRuns_IsRefused) {
  // Given a program that does something else in every run
  int runs = 0;
  struct Programs {
    static Task<Done> Forgetless(Actor& self, int* counted) {
      Op op(self.client(), OpKind::kUpdate);
      const uint64_t delta = static_cast<uint64_t>(++*counted);
      co_await op.InOrder(Faa(kCounter, delta));
      co_await op.InOrder(Faa(kCounter, delta));
      co_return Done{};
    }
  };
  const Scenario scenario =
      Counter({{.program = [&](Actor& self) { return Programs::Forgetless(self, &runs); }}});
  // When it is explored
  const Exploration found = Explore(scenario);
  // Expect that no conclusion is drawn from it
  EXPECT_EQ(found.conclusion, Conclusion::kUnfit);
  EXPECT_THAT(found.what, HasSubstr("does not repeat itself"));
}

TEST(ExhaustiveCounter, ClientSpinsUntilAnotherGoesOn_IsCutAndReportedAsALimit) {
  // Given a client that waits for the counter to rise, as long as it takes
  struct Programs {
    static Task<Done> Wait(Actor& self, bool forget) {
      Op op(self.client(), OpKind::kSearch);
      uint64_t value = 0;
      while (value == 0) {
        if (forget) self.Forget(0);
        value = co_await op.InOrder(Read<uint64_t>(kCounter));
      }
      co_return Done{};
    }
  };
  const auto waiting = [](bool forget) {
    return Participant{.program = [=](Actor& self) { return Programs::Wait(self, forget); }};
  };
  // When all interleavings are explored
  const Exploration cut = Explore(Counter({waiting(false), Incrementing(IncrementByFaa, 1)}));
  // Expect that the search admits to be incomplete
  EXPECT_EQ(cut.conclusion, Conclusion::kCut);
  EXPECT_GT(cut.cut, 0u);
  // And that it is complete if the client says that it does not count its attempts
  const Exploration complete = Explore(Counter({waiting(true), Incrementing(IncrementByFaa, 1)}));
  EXPECT_EQ(complete.conclusion, Conclusion::kNothing) << complete.ToString();
}

TEST(ExhaustiveCounter, ProgramThatRemembersWhatItPromisedToForget_IsRefused) {
  // Given a program that adds what it has seen, although it promised not to look back
  struct Programs {
    static Task<Done> BreakPromise(Actor& self) {
      Op op(self.client(), OpKind::kUpdate);
      const uint64_t seen = co_await op.InOrder(Read<uint64_t>(kCounter));
      self.Forget(0);
      co_await op.InOrder(Faa(kCounter, seen + 1));
      co_return Done{};
    }
  };
  // When two of them are explored
  const Exploration found =
      Explore(Counter({{.program = Programs::BreakPromise}, {.program = Programs::BreakPromise}}));
  // Expect that no conclusion is drawn from it
  EXPECT_EQ(found.conclusion, Conclusion::kUnfit);
  EXPECT_THAT(found.what, HasSubstr("has not forgotten"));
}

TEST(ExhaustiveCounter, LostWriteIsRepeated_ArrivesLateUnlessTheOldConnectionIsFenced) {
  // Given a client that repeats a WRITE on a new connection when its completion was lost, and then stores
  // more
  struct Programs {
    static Task<Outcome> Put(Actor& self, uint64_t value, bool fence) {
      const fabric::ClientId old = self.client().id();
      for (int attempt = 0; attempt < 2; ++attempt) {
        Op op(self.client(), OpKind::kUpdate);
        Result<Done> done = co_await op.InOrder(WriteObject(kCounter, value)).Outcome();
        if (done.ok()) break;
        self.Reconnect();
        Op recover(self.client(), OpKind::kMaintenance);
        if (fence) co_await recover.InOrder(fabric::FenceVerb(NodeId{0}, old));
      }
      co_return Outcome(Stored{});
    }
    static Task<Done> PutTwice(Actor& self, bool fence) {
      static constexpr std::string_view kOne("\1\0\0\0\0\0\0\0", 8);
      static constexpr std::string_view kTwo("\2\0\0\0\0\0\0\0", 8);
      co_await Recorded(self, Call::Put("n", kOne), Put(self, 1, fence));
      co_await Recorded(self, Call::Put("n", kTwo), Put(self, 2, fence));
      co_return Done{};
    }
  };
  const auto storing = [](bool fence) {
    return Counter({{.program = [=](Actor& self) { return Programs::PutTwice(self, fence); },
                     .may_lose_completion = true},
                    {.program = GetOnce, .phase = 1}});
  };
  // When all interleavings are explored
  const Exploration late = Explore(storing(false));
  const Exploration fenced = Explore(storing(true));
  // Expect that the first WRITE may arrive last, but not after the fence
  EXPECT_EQ(late.conclusion, Conclusion::kNotLinearizable) << late.ToString();
  EXPECT_EQ(fenced.conclusion, Conclusion::kNothing) << fenced.ToString();
}

TEST(ExhaustiveCounter, CallToTheNode_TakesEffectInOneStep) {
  // Given a node that adds to the counter on request, and clients that ask it to
  constexpr fabric::CallId kAdd(7, 1);
  fabric::CallTable calls;
  calls.Set(
      kAdd,
      [](fabric::NodeMemory& memory, fabric::ClientId, std::string_view request) -> Result<std::string> {
        if (request != "add") return Error(ErrorCode::kInvalidArgument, "what?");
        memory.Store(0, memory.Load(0) + 1);
        return std::to_string(memory.Load(0));
      });
  struct Programs {
    static Task<Outcome> Ask(Actor& self) {
      Op op(self.client(), OpKind::kUpdate);
      const std::string sum = co_await op.Call(NodeId{0}, kAdd, "add");
      co_return Outcome(Counted{std::stoull(sum)});
    }
  };
  Participant asking = Incrementing(Programs::Ask, 2);
  asking.may_die = true;
  Scenario scenario = Counter({asking, asking, {.program = GetOnce, .phase = 1}});
  scenario.calls = &calls;
  // When all interleavings are explored
  const Exploration found = Explore(scenario);
  // Expect that nothing is wrong
  EXPECT_EQ(found.conclusion, Conclusion::kNothing) << found.ToString();
}

}  // namespace
}  // namespace farside::check
