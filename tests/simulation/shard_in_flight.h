// Clients with many operations in flight at once: searches that share their trips, and changes of one key that take turns
// and carry each other (index/common/key_turns.h).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "check/history.h"
#include "check/linearizability.h"
#include "check/perform.h"
#include "tests/simulation/shard_world.h"

namespace farside::index::shard::in_flight {

using check::Call;
using check::History;
using check::Kind;
using check::OpId;
using fabric::Op;
using fabric::OpKind;
using fabric::sim::FaultKind;

// What is asked, with its own strings.
struct Request {
  Kind kind = Kind::kGet;
  std::string key;
  std::string value;
  std::string expected;

  Call call() const { return {.kind = kind, .key = key, .value = value, .expected = expected, .delta = 1}; }
};

inline void End(History& history, OpId id, Result<check::Outcome> outcome) {
  if (outcome.ok()) {
    history.Return(id, std::move(*outcome));
  } else if (outcome.error().code() == ErrorCode::kOutcomeUnknown) {
    history.LoseAnswer(id);
  } else {
    history.Refuse(id, outcome.error().ToString());
  }
}

inline Task<Done> Record(History& history, Member& member, int client, Request request) {
  Op op(member.client(), OpKind::kUpdate);
  const OpId id = history.Invoke(client, request.call());
  Result<check::Outcome> outcome = co_await check::Perform(member.index(), op, request.call()).Outcome();
  End(history, id, std::move(outcome));
  co_return Done{};
}

// Searches all keys by one call; those that are left open are searched alone.
inline Task<Done> RecordTogether(History& history, Member& member, int client,
                                 std::vector<std::string> keys) {
  std::vector<std::string> values(keys.size());
  std::vector<Search> searches(keys.size());
  std::vector<OpId> ids;
  for (size_t i = 0; i < keys.size(); ++i) {
    ids.push_back(history.Invoke(client, Call::Get(keys[i])));
    searches[i].key = keys[i];
    searches[i].value = &values[i];
  }
  {
    Op op(member.client(), OpKind::kSearch);
    static_cast<void>(co_await member.index().SearchTogether(op, searches).Outcome());
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    check::Found found;
    switch (searches[i].verdict) {
      case Search::Verdict::kFound: found.value = values[i]; [[fallthrough]];
      case Search::Verdict::kAbsent: history.Return(ids[i], found); break;
      case Search::Verdict::kOpen: {
        Op op(member.client(), OpKind::kSearch);
        Result<check::Outcome> outcome =
            co_await check::Perform(member.index(), op, Call::Get(keys[i])).Outcome();
        End(history, ids[i], std::move(outcome));
      }
    }
  }
  co_return Done{};
}

inline std::string InFlightKey(uint64_t number) { return "key " + std::to_string(number); }

inline Request DrawRequest(Random& random, int& values) {
  constexpr std::array kKinds = {Kind::kPut,    Kind::kPut,           Kind::kPut,      Kind::kUpdate,
                                 Kind::kUpdate, Kind::kInsert,        Kind::kDelete,   Kind::kGet,
                                 Kind::kGet,    Kind::kCompareAndSet, Kind::kIncrement};
  Request request;
  request.kind = kKinds[random.Below(kKinds.size())];
  request.key = InFlightKey(random.Below(3));
  request.value = "v" + std::to_string(++values);
  request.expected = "v" + std::to_string(random.Below(static_cast<uint64_t>(values)) + 1);
  return request;
}

// Some requests one after the other, and searches of all keys at once in between.
inline Task<Done> RecordSome(History& history, Member& member, int client, Random random, int& values) {
  for (int i = 0; i < 5; ++i) {
    if (random.Below(5) == 0) {
      std::vector<std::string> keys{InFlightKey(0), InFlightKey(1), InFlightKey(2), "never"};
      co_await RecordTogether(history, member, client, std::move(keys));
    } else {
      Request request = DrawRequest(random, values);
      co_await Record(history, member, client, std::move(request));
    }
  }
  co_return Done{};
}

// Two clients, each with six operations in flight on three keys; if `dies`, one of them does in the middle.
inline std::string ManyInFlight(uint64_t seed, const OptionMap& options, bool dies) {
  World world({.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i < 2; ++i) members.push_back(std::make_unique<Member>(world, options));
  Random random(seed);
  History history;
  int values = 0;
  if (dies) {
    const FaultKind kind = random.Below(2) == 0 ? FaultKind::kCrashBefore : FaultKind::kCrashAfter;
    world.Arm(random.Below(100), kind);
  }
  std::array<std::vector<Task<Done>>, 2> tasks;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 6; ++j)
      tasks[i].push_back(RecordSome(history, *members[i], i, Random(random.Next()), values));
  }
  for (auto& of_one : tasks) {
    for (Task<Done>& task : of_one) task.Start();
  }
  const auto over = [&](int i) {
    return members[i]->crashed() ||
           std::all_of(tasks[i].begin(), tasks[i].end(), [](const Task<Done>& task) { return task.done(); });
  };
  world.Drive([&] { return over(0) && over(1); });
  if (!over(0) || !over(1)) return "somebody waits for ever";
  const check::Verdict verdict = check::CheckLinearizable(history);
  if (!verdict.ok()) return check::ToString(verdict) + "\n" + check::Chart(history.operations());
  world.Disarm();
  for (const auto& member : members) {
    if (!member->crashed()) member->Now(member->Verify());
  }
  for (auto& of_one : tasks) of_one.clear();
  return world.problem;
}

// The same with many seeds, all shapes, and with and without a death. The first problem, or nothing.
inline std::string ManyInFlightOften(uint64_t seeds) {
  const std::vector<OptionMap> shapes = (*MakeShardEngine({}))->stress_options();
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::string problem = ManyInFlight(seed, shapes[seed / 2 % shapes.size()], seed % 2 == 0);
    if (!problem.empty()) return "seed " + std::to_string(seed) + ": " + problem;
  }
  return "";
}

}  // namespace farside::index::shard::in_flight
