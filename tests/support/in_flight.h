// Clients with many operations in flight at once: searches that share their trips, and changes of one key that take turns
// and carry each other (index/kit/key_turns.h).
#pragma once

#include <fmt/format.h>

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
#include "tests/support/table_world.h"

namespace farside::index::in_flight {

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

inline Task<Done> Record(History& history, TableMember& member, int client, Request request) {
  Op op(member.client(), OpKind::kUpdate);
  const OpId id = history.Invoke(client, request.call());
  Result<check::Outcome> outcome = co_await check::Perform(member.index(), op, request.call()).Outcome();
  End(history, id, std::move(outcome));
  co_return Done{};
}

// Searches all keys by one call; those that are left open are searched alone.
inline Task<Done> RecordTogether(History& history, TableMember& member, int client,
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

// Keys and values have 8 bytes, as tables with keys=inline want them. Some values are too long for those, and refused there.
inline std::string InFlightKey(uint64_t number) { return fmt::format("key {:04}", number); }
inline std::string InFlightValue(uint64_t number) {
  return fmt::format("v{:07}{}", number, number % 8 == 0 ? " and more" : "");
}

inline Request DrawRequest(Random& random, uint64_t keys, int& values) {
  constexpr std::array kKinds = {Kind::kPut,    Kind::kPut,           Kind::kPut,      Kind::kUpdate,
                                 Kind::kUpdate, Kind::kInsert,        Kind::kDelete,   Kind::kGet,
                                 Kind::kGet,    Kind::kCompareAndSet, Kind::kIncrement};
  Request request;
  request.kind = kKinds[random.Below(kKinds.size())];
  request.key = InFlightKey(random.Below(keys));
  request.value = InFlightValue(static_cast<uint64_t>(++values));
  request.expected = InFlightValue(random.Below(static_cast<uint64_t>(values)) + 1);
  return request;
}

struct Options {
  uint64_t keys = 3;
  bool together = false;  // with searches of all keys at once in between
  bool dies = false;      // one of the clients does, in the middle
};

// Some requests one after the other.
inline Task<Done> RecordSome(History& history, TableMember& member, int client, Options options,
                             Random random, int& values) {
  for (int i = 0; i < 5; ++i) {
    if (options.together && random.Below(5) == 0) {
      std::vector<std::string> keys;
      for (uint64_t key = 0; key < options.keys; ++key) keys.push_back(InFlightKey(key));
      keys.emplace_back("not ever");
      co_await RecordTogether(history, member, client, std::move(keys));
    } else {
      Request request = DrawRequest(random, options.keys, values);
      co_await Record(history, member, client, std::move(request));
    }
  }
  co_return Done{};
}

// Two clients, each with six operations in flight. What went wrong, or nothing.
template <class World, class Member>
std::string ManyInFlight(uint64_t seed, const OptionMap& table, Options options) {
  World world({.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i < 2; ++i) members.push_back(std::make_unique<Member>(world, table));
  Random random(seed);
  History history;
  int values = 0;
  if (options.dies) {
    const FaultKind kind = random.Below(2) == 0 ? FaultKind::kCrashBefore : FaultKind::kCrashAfter;
    world.Arm(random.Below(100), kind);
  }
  std::array<std::vector<Task<Done>>, 2> tasks;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 6; ++j)
      tasks[i].push_back(RecordSome(history, *members[i], i, options, Random(random.Next()), values));
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

// Ten puts of one key in flight at once take two changes: the first put, and the second, which carries all others. The value
// of the last is there, and only the first was an insert. What went wrong, or nothing.
template <class World, class Member>
std::string PutsAreCarriedByOneChange() {
  World world;
  Member member(world, {});
  member.Now(member.Put("other", "so that the table is known"));
  std::vector<Task<PutOutcome>> puts;
  for (int i = 0; i < 10; ++i) puts.push_back(member.Put("hot", "value " + std::to_string(i)));
  const uint64_t before = member.client().counters().Total().index_trips;
  for (Task<PutOutcome>& put : puts) put.Start();
  world.Drive(
      [&] { return std::all_of(puts.begin(), puts.end(), [](const auto& put) { return put.done(); }); });
  for (size_t i = 0; i < puts.size(); ++i) {
    if (!puts[i].done()) return fmt::format("put {} waits for ever", i);
    const Result<PutOutcome> outcome = puts[i].TakeResult();
    if (!outcome.ok()) return outcome.error().ToString();
    if ((*outcome == PutOutcome::kInserted) != (i == 0) || *outcome == PutOutcome::kNotTold)
      return fmt::format("put {} does not say what it did", i);
  }
  puts.clear();
  const uint64_t trips = member.client().counters().Total().index_trips - before;
  if (trips != 4) return fmt::format("they took {} trips and not 4", trips);
  const std::string got = member.Now(member.Get("hot"));
  if (got != "value 9") return "the key has " + got;
  return world.problem;
}

}  // namespace farside::index::in_flight
