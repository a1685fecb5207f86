// Clients with many operations in flight at once: searches that share their trips, and changes of one key
// that take turns and carry each other (index/kit/key_queue.h).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
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

void End(History& history, OpId id, Result<check::Outcome> outcome);

Task<Done> Record(History& history, TableMember& member, int client, Request request);

struct Options {
  uint64_t keys = 3;
  bool together = false;  // with searches of all keys at once in between
  bool dies = false;      // one of the clients does, in the middle
};

// Some requests one after the other.
Task<Done> RecordSome(History& history, TableMember& member, int client, Options options, Random random,
                      int& values);

// Two clients, each with six operations in flight. What went wrong, or nothing.
template <class World, class Member>
std::string ManyInFlight(uint64_t seed, const OptionMap& table, Options options) {
  World world({.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
  std::vector<std::unique_ptr<Member>> members;
  OptionMap shared = table;
  shared["share_searches"] = "yes";
  // One of them does, in half of the runs.
  for (int i = 0; i < 2; ++i)
    members.push_back(std::make_unique<Member>(world, i == 1 && seed / 4 % 2 == 1 ? shared : table));
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
  if (!over(0) || !over(1)) return "a client waits for ever";
  const check::Verdict verdict = check::CheckLinearizable(history);
  if (!verdict.ok()) return check::ToString(verdict) + "\n" + check::Chart(history.operations());
  world.Disarm();
  for (const auto& member : members) {
    if (!member->crashed()) member->Now(member->Verify());
  }
  for (auto& of_one : tasks) of_one.clear();
  return world.problem;
}

// What came of ten puts of one key that were in flight at once. Changes of one key take turns: the first put
// is one, and the second, which carries all others, is another.
struct PutsAtOnce {
  std::vector<PutOutcome> outcomes;  // in the order of the puts
  uint64_t trips = 0;                // end to end
  uint64_t index_trips = 0;
  std::string value;    // of the key, afterwards; the last put has "value 9"
  std::string problem;  // what went wrong, or nothing
};

template <class World, class Member>
PutsAtOnce PutAtOnce() {
  World world;
  Member member(world, {});
  member.Now(member.Put("other", "so that the table is known"));
  std::vector<Task<PutOutcome>> puts;
  for (int i = 0; i < 10; ++i) puts.push_back(member.Put("hot", "value " + std::to_string(i)));
  const fabric::OpTally before = member.client().counters().Total();
  for (Task<PutOutcome>& put : puts) put.Start();
  world.Drive(
      [&] { return std::all_of(puts.begin(), puts.end(), [](const auto& put) { return put.done(); }); });
  PutsAtOnce result;
  for (size_t i = 0; i < puts.size(); ++i) {
    if (!puts[i].done()) return {.problem = fmt::format("put {} waits for ever", i)};
    const Result<PutOutcome> outcome = puts[i].TakeResult();
    if (!outcome.ok()) return {.problem = outcome.error().ToString()};
    result.outcomes.push_back(*outcome);
  }
  puts.clear();
  const fabric::OpTally after = member.client().counters().Total();
  result.trips = after.end_to_end_trips - before.end_to_end_trips;
  result.index_trips = after.index_trips - before.index_trips;
  result.value = member.Now(member.Get("hot"));
  result.problem = world.problem;
  return result;
}

// What an engine whose changes take two trips makes of them: four trips, and only the first put was an
// insert. What went wrong, or nothing.
template <class World, class Member>
std::string PutsAreCoalescedIntoOneChange() {
  const PutsAtOnce puts = PutAtOnce<World, Member>();
  if (!puts.problem.empty()) return puts.problem;
  for (size_t i = 0; i < puts.outcomes.size(); ++i) {
    if (puts.outcomes[i] != (i == 0 ? PutOutcome::kInserted : PutOutcome::kReplaced))
      return fmt::format("put {} does not say what it did", i);
  }
  if (puts.index_trips != 4) return fmt::format("they took {} trips and not 4", puts.index_trips);
  return puts.value == "value 9" ? "" : "the key has " + puts.value;
}

// The trips, end to end, of searches of one key: of two, one after the other, or of ten at once that share
// them. Negative: something went wrong.
template <class World, class Member>
int TripsOfSearches(bool at_once) {
  World world;
  Member member(world, {{"share_searches", "yes"}});
  member.Now(member.Put("hot", "value"));
  member.Now(member.Maintain());
  const fabric::OpTally before = member.client().counters().Total();
  std::vector<Task<std::string>> searches;
  for (int i = 0; i < (at_once ? 10 : 2); ++i) searches.push_back(member.Get("hot"));
  const auto done = [](const Task<std::string>& search) { return search.done(); };
  for (Task<std::string>& search : searches) {
    search.Start();
    if (!at_once) world.Drive([&] { return search.done(); });
  }
  world.Drive([&] { return std::all_of(searches.begin(), searches.end(), done); });
  for (Task<std::string>& search : searches) {
    if (!search.done() || search.TakeResult().value() != "value") return -1;
  }
  searches.clear();
  return static_cast<int>(member.client().counters().Total().end_to_end_trips - before.end_to_end_trips);
}

}  // namespace farside::index::in_flight
