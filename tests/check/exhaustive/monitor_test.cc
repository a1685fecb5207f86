// The automaton that judges histories event by event agrees with the linearizability checker, and the search
// agrees with a plain enumeration of all paths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "check/exhaustive/actor.h"
#include "check/exhaustive/explorer.h"
#include "check/exhaustive/monitor.h"
#include "check/exhaustive/trace.h"
#include "check/exhaustive/world.h"
#include "check/history.h"
#include "check/linearizability.h"
#include "fabric/op.h"
#include "tests/support/sanitized.h"

namespace farside::check {
namespace {

using exhaustive::Event;
using exhaustive::EventKind;
using exhaustive::Monitor;

constexpr uint64_t kSlowness = kSanitized ? 10 : 1;

// ---- random histories ----------------------------------------------------------------------------------

constexpr std::array<std::string_view, 2> kKeys = {"a", "b"};
constexpr std::array<std::string_view, 3> kValues = {"x", "y", std::string_view("\2\0\0\0\0\0\0\0", 8)};

Operation RandomCall(Random& random) {
  Operation call;
  call.kind = static_cast<Kind>(random.Below(7));
  call.key = kKeys[random.Below(kKeys.size())];
  call.value = kValues[random.Below(kValues.size())];
  call.expected = kValues[random.Below(kValues.size())];
  call.delta = 1 + random.Below(2);
  return call;
}

// Often wrong, but of the right type.
Outcome RandomOutcome(Kind kind, Random& random) {
  switch (kind) {
    case Kind::kGet: {
      const uint64_t which = random.Below(kValues.size() + 1);
      if (which == kValues.size()) return Found{};
      return Found{std::string(kValues[which])};
    }
    case Kind::kPut: {
      const uint64_t which = random.Below(3);
      return which == 2 ? Stored{} : Stored{which == 1};
    }
    case Kind::kIncrement: return Counted{1 + random.Below(4)};
    default: return Applied{random.Chance(1, 2)};
  }
}

// Feeds the same events to both. True: they agree; `linearizable` says on what.
bool Agree(uint64_t seed, bool& linearizable) {
  Random random(seed);
  History history;
  Monitor monitor;
  Monitor::History judged = Monitor::kEmpty;
  struct InProgress {
    OpId id;
    uint32_t name;
    Kind kind;
  };
  std::vector<InProgress> in_progress;
  uint32_t names = 0;
  const auto feed = [&](const Event& event) {
    if (judged != Monitor::kNotLinearizable) judged = monitor.Next(judged, monitor.NumberOf(event));
  };

  const uint64_t events = 2 + random.Below(14);
  for (uint64_t i = 0; i < events; ++i) {
    if (in_progress.empty() || (in_progress.size() < 4 && random.Chance(1, 2))) {
      Event event{.kind = EventKind::kInvoke, .operation = names, .call = RandomCall(random)};
      const Operation& call = event.call;
      const OpId id = history.Invoke(0, {.kind = call.kind,
                                         .key = call.key,
                                         .value = call.value,
                                         .expected = call.expected,
                                         .delta = call.delta});
      in_progress.push_back({id, names++, call.kind});
      feed(event);
      continue;
    }
    const size_t which = random.Below(in_progress.size());
    const InProgress ended = in_progress[which];
    in_progress.erase(in_progress.begin() + static_cast<ptrdiff_t>(which));
    const uint64_t how = random.Below(10);
    if (how == 0) {
      history.LoseAnswer(ended.id);
      feed({.kind = EventKind::kLoseAnswer, .operation = ended.name});
    } else if (how == 1) {
      history.Refuse(ended.id, "no");
      feed({.kind = EventKind::kRefuse, .operation = ended.name, .why = "no"});
    } else {
      const Outcome outcome = RandomOutcome(ended.kind, random);
      history.Return(ended.id, outcome);
      feed({.kind = EventKind::kReturn, .operation = ended.name, .outcome = outcome});
    }
  }
  linearizable = CheckLinearizable(history).ok();
  return linearizable == (judged != Monitor::kNotLinearizable);
}

TEST(ExhaustiveMonitor, RandomHistories_AreJudgedAsByTheChecker) {
  uint64_t accepted = 0;
  const uint64_t histories = 40'000 / kSlowness;
  for (uint64_t seed = 0; seed < histories; ++seed) {
    bool linearizable = false;
    ASSERT_TRUE(Agree(seed, linearizable)) << "seed " << seed;
    accepted += linearizable;
  }
  // Both verdicts must be common, or this proves little.
  EXPECT_GT(accepted, histories / 10);
  EXPECT_LT(accepted, histories * 9 / 10);
}

TEST(ExhaustiveMonitor, HistoriesWithTheSameFuture_AreOneHistory) {
  // Given Put(1), Get -> 1 in one order and the other way around in time, both complete
  Monitor monitor;
  Operation put;
  put.kind = Kind::kPut;
  put.key = "k";
  put.value = "1";
  Operation get;
  get.kind = Kind::kGet;
  get.key = "k";
  const uint32_t put_begins =
      monitor.NumberOf(Event{.kind = EventKind::kInvoke, .operation = 1, .call = put});
  const uint32_t put_ends =
      monitor.NumberOf(Event{.kind = EventKind::kReturn, .operation = 1, .outcome = Stored{}});
  const uint32_t get_begins =
      monitor.NumberOf(Event{.kind = EventKind::kInvoke, .operation = 2, .call = get});
  const uint32_t get_ends =
      monitor.NumberOf(Event{.kind = EventKind::kReturn, .operation = 2, .outcome = Found{"1"}});
  const auto after = [&](std::initializer_list<uint32_t> events) {
    Monitor::History history = Monitor::kEmpty;
    for (uint32_t event : events) history = monitor.Next(history, event);
    return history;
  };
  // Expect that nothing of it matters any more but the value
  EXPECT_EQ(after({put_begins, put_ends, get_begins, get_ends}),
            after({get_begins, put_begins, get_ends, put_ends}));
  EXPECT_EQ(after({put_begins, put_ends}), after({put_begins, get_begins, put_ends, get_ends}));
  // And that a Get that ends before the Put begins cannot see it
  EXPECT_EQ(after({get_begins, get_ends}), Monitor::kNotLinearizable);
}

// ---- random programs -----------------------------------------------------------------------------------

using fabric::Batch;
using fabric::ClientId;
using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::OpKind;
using fabric::Order;

constexpr size_t kWords = 2;

// A random trip on two words, whose values stay small; which one it is follows from the seed.
Task<uint64_t> RandomTrip(Op& op, uint64_t seed) {
  Random random(seed);
  Batch batch(op, random.Chance(1, 4) ? Order::kTogether : Order::kInOrder);
  const uint64_t verbs = 1 + random.Below(2);
  std::array<uint64_t, 2> words{};
  for (size_t i = 0; i < verbs; ++i) {
    const FarAddr at(NodeId{0}, 8 * random.Below(kWords));
    const uint64_t kind = random.Below(4);
    words[i] = 1 + random.Below(3);
    if (kind == 0) {
      batch.Add(fabric::WriteObject(at, words[i]));
    } else if (kind == 1) {
      batch.Add(fabric::Cas(at, random.Below(3), words[i]));
    } else {
      batch.Add(fabric::Read(at, std::as_writable_bytes(std::span(&words[i], 1))));
    }
  }
  co_await batch;
  co_return words[0] + (verbs == 2 ? words[1] : 0) + batch.Old(0);
}

// Answers with whatever it saw: sometimes that is linearizable.
Task<Outcome> RandomOperation(Actor& self, uint64_t seed, Kind kind) {
  Random random(seed);
  Op op(self.client(), OpKind::kUpdate);
  uint64_t seen = co_await RandomTrip(op, random.Next());
  if (random.Chance(1, 2)) seen = co_await RandomTrip(op, random.Next() + seen);
  if (kind == Kind::kPut) co_return Outcome(Stored{});
  if (seen % 4 == 0) co_return Outcome(Found{});
  co_return Outcome(Found{seen % 4 == 1 ? "1" : "2"});
}

Task<Done> RandomProgram(Actor& self, uint64_t seed) {
  Random random(seed);
  const uint64_t operations = 1 + random.Below(2);
  for (uint64_t i = 0; i < operations; ++i) {
    const Call call = random.Chance(1, 2) ? Call::Put("k", random.Chance(1, 2) ? "1" : "2") : Call::Get("k");
    Result<Done> done =
        co_await Recorded(self, call, RandomOperation(self, random.Next(), call.kind)).Outcome();
    if (!done.ok()) co_return done;
    if (random.Chance(1, 2)) self.Forget(i);
  }
  co_return Done{};
}

Scenario RandomScenario(uint64_t seed) {
  Scenario scenario;
  scenario.region_bytes = 8 * kWords;
  for (uint64_t i = 0; i < 2; ++i) {
    scenario.participants.push_back(
        {.program = [=](Actor& self) { return RandomProgram(self, 2 * seed + i); },
         .may_die = seed % 4 == 1,
         .may_lose_completion = seed % 4 == 2});
  }
  return scenario;
}

// Takes every path to its end, without looking whether a state was seen before. Says whether all histories
// are linearizable, as the checker sees it; nothing if there are too many paths.
class AllPaths {
 public:
  explicit AllPaths(const Scenario& scenario) : scenario_(scenario) {}

  std::optional<bool> AreLinearizable() {
    Follow();
    if (paths_ > kMostPaths) return std::nullopt;
    return linearizable_;
  }

 private:
  static constexpr uint64_t kMostPaths = 3000;

  void Follow() {
    if (paths_ > kMostPaths || !linearizable_) return;
    exhaustive::World world(scenario_);
    exhaustive::Trace trace;
    world.set_trace(&trace);
    std::vector<uint64_t> bytes(world.layout().capacity() / 8);
    const exhaustive::State state(world.layout(), reinterpret_cast<std::byte*>(bytes.data()));
    std::vector<exhaustive::Choice> choices;
    world.Begin(state);
    for (size_t choice : path_) {
      choices.clear();
      world.ListChoices(state, choices);
      world.Take(state, choices[choice]);
    }
    choices.clear();
    if (!world.problem()) world.ListChoices(state, choices);
    if (choices.empty()) {
      ++paths_;
      linearizable_ = CheckLinearizable(trace.history()).ok();
    }
    for (size_t i = 0; i < choices.size(); ++i) {
      path_.push_back(i);
      Follow();
      path_.pop_back();
    }
  }

  const Scenario& scenario_;
  std::vector<size_t> path_;
  uint64_t paths_ = 0;
  bool linearizable_ = true;
};

TEST(ExhaustiveMonitor, RandomPrograms_AreJudgedAsByTheEnumerationOfAllPaths) {
  int accepted = 0;
  int rejected = 0;
  for (uint64_t seed = 0; seed < (kSanitized ? 120 : 400); ++seed) {
    const Scenario scenario = RandomScenario(seed);
    const std::optional<bool> linearizable = AllPaths(scenario).AreLinearizable();
    if (!linearizable) continue;
    const Exploration found = Explore(scenario);
    ASSERT_EQ(found.conclusion, *linearizable ? Conclusion::kNothing : Conclusion::kNotLinearizable)
        << "seed " << seed << '\n'
        << found.ToString();
    ++(*linearizable ? accepted : rejected);
  }
  EXPECT_GT(accepted, 10);
  EXPECT_GT(rejected, 10);
}

// ---- the reduction ---------------------------------------------------------------------------------------

// Two lines that all clients use, two words of each, and then a line with a result of each client.
constexpr uint64_t kResults = 128;
struct Everything {
  std::array<uint64_t, 24> words;
  friend auto operator<=>(const Everything&, const Everything&) = default;
};

// A trip of up to three verbs: READs and WRITEs of up to two lines, and atomics. Returns a digest of the
// answers.
Task<uint64_t> RandomLongTrip(Op& op, uint64_t seed) {
  Random random(seed);
  Batch batch(op, random.Chance(1, 4) ? Order::kTogether : Order::kInOrder);
  std::array<std::array<uint64_t, 16>, 3> words{};
  const uint64_t verbs = 1 + random.Below(3);
  for (size_t i = 0; i < verbs; ++i) {
    const uint64_t line = random.Below(2);
    const FarAddr at(NodeId{0}, 64 * line + 8 * random.Below(2));
    const size_t most = (kResults - at.offset) / 8;
    const std::span<uint64_t> used = std::span(words[i]).first(random.Chance(1, 3) ? most : 1);
    const uint64_t kind = random.Below(5);
    const bool fenced = random.Chance(1, 8);
    if (kind < 2) {
      used.front() = used.back() = 1 + random.Below(2);
      const fabric::WriteVerb write = fabric::Write(at, std::as_bytes(used));
      batch.Add(fenced ? Fenced(write) : write);
    } else if (kind < 4) {
      const fabric::ReadIntoVerb read = fabric::Read(at, std::as_writable_bytes(used));
      batch.Add(fenced ? Fenced(read) : read);
    } else {
      const fabric::AtomicVerb cas = fabric::Cas(at, random.Below(2), 1 + random.Below(2));
      batch.Add(fenced ? Fenced(cas) : cas);
    }
  }
  co_await batch;
  uint64_t digest = 0;
  for (size_t i = 0; i < verbs; ++i) {
    for (uint64_t word : words[i]) digest = 3 * digest + word;
    digest = 3 * digest + batch.Old(i);
  }
  co_return digest;
}

// What clients can have seen: all together in the end, and each for itself until an error.
struct Seen {
  std::set<Everything> in_the_end;
  std::set<std::tuple<uint64_t, uint64_t, ErrorCode>> until_an_error;  // client, digest
  friend bool operator==(const Seen&, const Seen&) = default;
};

Task<uint64_t> RandomAction(Op& op, uint64_t client, uint64_t seed) {
  Random random(seed);
  const uint64_t kind = random.Below(8);
  if (kind == 0) {
    const ClientId victim = exhaustive::IdOf((client + 1) % 3, 0);
    co_await op.InOrder(fabric::FenceVerb(NodeId{0}, victim));
    co_return 0;
  }
  if (kind == 1) {
    op.Detach(Order::kInOrder, fabric::Cas(FarAddr(NodeId{0}, 8 * random.Below(2)), 0, 1 + random.Below(2)));
    co_return 0;
  }
  co_return co_await RandomLongTrip(op, seed);
}

// Leaves a digest of all that it has seen.
Task<Done> RandomTrips(Actor& self, uint64_t client, uint64_t seed, Seen* all_seen) {
  Random random(seed);
  Op op(self.client(), OpKind::kUpdate);
  uint64_t digest = 1;
  const uint64_t trips = 1 + random.Below(2);
  for (uint64_t i = 0; i < trips; ++i) {
    const uint64_t next = random.Next();
    Result<uint64_t> seen = co_await RandomAction(op, client, next).Outcome();
    if (!seen.ok()) {
      all_seen->until_an_error.emplace(client, digest, seen.error().code());
      co_return seen.error();
    }
    digest = 1000 * digest + *seen;
  }
  co_await op.InOrder(fabric::WriteObject(FarAddr(NodeId{0}, kResults + 8 * client), digest));
  co_return Done{};
}

Task<Done> NoteEverything(Actor& self, Seen* seen) {
  Op op(self.client(), OpKind::kSearch);
  const Everything everything = co_await op.InOrder(fabric::Read<Everything>(FarAddr(NodeId{0}, 0)));
  seen->in_the_end.insert(everything);
  co_return Done{};
}

Seen Explored(uint64_t seed, bool reduce, Exploration& found) {
  Seen seen;
  Scenario scenario;
  scenario.region_bytes = sizeof(Everything);
  for (uint64_t i = 0; i < 3; ++i) {
    scenario.participants.push_back(
        {.program = [=, &seen](Actor& self) { return RandomTrips(self, i, 3 * seed + i, &seen); },
         .may_die = seed % 4 == 1,
         .may_lose_completion = seed % 4 == 2});
  }
  scenario.participants.push_back(
      {.program = [&](Actor& self) { return NoteEverything(self, &seen); }, .phase = 1});
  scenario.freedoms.tear_reads = seed % 3 == 1;
  scenario.freedoms.tear_writes = seed % 3 != 0;
  scenario.freedoms.ordered_reads = seed % 5 != 0;
  scenario.reduce = reduce;
  scenario.max_states = 300'000;
  found = Explore(scenario);
  return seen;
}

TEST(ExhaustiveMonitor, RandomPrograms_SeeTheSameWithAndWithoutReduction) {
  uint64_t all_states = 0;
  uint64_t reduced_states = 0;
  uint64_t outcomes = 0;
  for (uint64_t seed = 0; seed < 200 / kSlowness; ++seed) {
    Exploration plain;
    Exploration reduced;
    const Seen all = Explored(seed, false, plain);
    if (plain.conclusion == Conclusion::kLimit) continue;
    const Seen rest = Explored(seed, true, reduced);
    ASSERT_EQ(plain.conclusion, Conclusion::kNothing) << plain.ToString();
    ASSERT_EQ(reduced.conclusion, Conclusion::kNothing) << reduced.ToString();
    ASSERT_EQ(all.in_the_end.size(), rest.in_the_end.size()) << "seed " << seed;
    ASSERT_EQ(all.until_an_error.size(), rest.until_an_error.size()) << "seed " << seed;
    ASSERT_TRUE(all == rest) << "seed " << seed;
    all_states += plain.states;
    reduced_states += reduced.states;
    outcomes += all.in_the_end.size() + all.until_an_error.size();
  }
  EXPECT_GT(outcomes, 1000u);
  EXPECT_LT(reduced_states, all_states);
}

}  // namespace
}  // namespace farside::check
