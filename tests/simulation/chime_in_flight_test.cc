// Clients with many operations in flight at once: changes of one key take turns and carry each other, changes of one leaf
// take turns (index/common/key_turns.h).
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "check/history.h"
#include "check/linearizability.h"
#include "check/perform.h"
#include "tests/sanitized.h"
#include "tests/simulation/chime_world.h"

namespace farside::index::chime {
namespace {

using check::Call;
using check::History;
using check::Kind;
using check::OpId;
using fabric::Op;
using fabric::OpKind;

struct Request {
  Kind kind = Kind::kGet;
  std::string key;
  std::string value;
  std::string expected;

  Call call() const { return {.kind = kind, .key = key, .value = value, .expected = expected, .delta = 1}; }
};

Request DrawRequest(Random& random, int& values) {
  constexpr std::array kKinds = {Kind::kPut,    Kind::kPut,           Kind::kPut,      Kind::kUpdate,
                                 Kind::kUpdate, Kind::kInsert,        Kind::kDelete,   Kind::kGet,
                                 Kind::kGet,    Kind::kCompareAndSet, Kind::kIncrement};
  Request request;
  request.kind = kKinds[random.Below(kKinds.size())];
  request.key = "key " + std::to_string(random.Below(4));
  request.value = "v" + std::to_string(++values);
  request.expected = "v" + std::to_string(random.Below(static_cast<uint64_t>(values)) + 1);
  return request;
}

Task<Done> RecordSome(History& history, Member& member, int client, Random random, int& values) {
  for (int i = 0; i < 5; ++i) {
    const Request request = DrawRequest(random, values);
    Op op(member.client(), OpKind::kUpdate);
    const OpId id = history.Invoke(client, request.call());
    Result<check::Outcome> outcome = co_await check::Perform(member.index(), op, request.call()).Outcome();
    if (outcome.ok()) {
      history.Return(id, std::move(*outcome));
    } else if (outcome.error().code() == ErrorCode::kOutcomeUnknown) {
      history.LoseAnswer(id);
    } else {
      history.Refuse(id, outcome.error().ToString());
    }
  }
  co_return Done{};
}

// Two clients, each with six operations in flight on four keys. What went wrong, or nothing.
std::string ManyInFlight(uint64_t seed, const OptionMap& options) {
  World world({.seed = seed, .chaos = fabric::sim::Chaos::ForSeed(seed, /*faults=*/false)});
  std::array<std::unique_ptr<Member>, 2> members;
  for (auto& member : members) member = std::make_unique<Member>(world, options);
  Random random(seed);
  History history;
  int values = 0;
  std::vector<Task<Done>> tasks;
  for (int i = 0; i < 12; ++i)
    tasks.push_back(RecordSome(history, *members[i % 2], i % 2, Random(random.Next()), values));
  for (Task<Done>& task : tasks) task.Start();
  const auto over = [&] {
    return std::all_of(tasks.begin(), tasks.end(), [](const Task<Done>& task) { return task.done(); });
  };
  world.Drive(over);
  if (!over()) return "somebody waits for ever";
  tasks.clear();
  const check::Verdict verdict = check::CheckLinearizable(history);
  if (!verdict.ok()) return check::ToString(verdict) + "\n" + check::Chart(history.operations());
  for (const auto& member : members) member->Now(member->Verify());
  return world.problem;
}

TEST(ChimeInFlight, ManyOperationsOfTwoClients_AreLinearizable) {
  // Given two clients and four keys, in tables of all shapes, read as this table does it and as others do. When each has six
  // operations in flight, again and again. Expect that every history is linearizable, and that everybody comes to an end.
  const std::vector<OptionMap> shapes = (*MakeChimeEngine({}))->stress_options();
  for (uint64_t seed = 1; seed <= (kSanitized ? 80 : 800); ++seed) {
    OptionMap options = shapes[seed / 2 % shapes.size()];
    if (seed % 2 == 0) {
      options.merge(OptionMap{{"leaf_read", "whole"},
                              {"insert_read", "whole"},
                              {"fence_read", "always"},
                              {"lock_read", "apart"}});
    }
    ASSERT_EQ(ManyInFlight(seed, options), "") << "seed " << seed;
  }
}

TEST(ChimeInFlight, PutsOfOneKey_AreCarriedByOneChange) {
  // Given a key. When ten puts of it are in flight at once. Expect two changes: the first put, and the second, which carries
  // all others. The value of the last is there, and only the first was an insert.
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
    const Result<PutOutcome> outcome = puts[i].TakeResult();
    ASSERT_TRUE(outcome.ok()) << outcome.error().ToString();
    EXPECT_EQ(*outcome, i == 0 ? PutOutcome::kInserted : PutOutcome::kReplaced) << i;
  }
  puts.clear();
  EXPECT_EQ(member.client().counters().Total().index_trips - before, 4u);
  EXPECT_EQ(member.Now(member.Get("hot")), "value 9");
  EXPECT_EQ(world.problem, "");
}

TEST(ChimeInFlight, ChangesOfOneLeaf_DoNotMeetEachOther) {
  // Given a table of one leaf. When one client changes ten keys of it at once. Expect two trips each, and that nobody has
  // found the lock taken.
  World world;
  Member member(world, {{"keys", "inline"}});
  for (int i = 0; i < 10; ++i) member.Now(member.Put("number " + std::to_string(i), "value of"));
  std::vector<Task<bool>> updates;
  for (int i = 0; i < 10; ++i) updates.push_back(member.Update("number " + std::to_string(i), "another."));
  for (Task<bool>& update : updates) update.Start();
  world.Drive([&] {
    return std::all_of(updates.begin(), updates.end(), [](const auto& update) { return update.done(); });
  });
  updates.clear();
  EXPECT_EQ(member.tally(OpKind::kUpdate).operations, 10u);
  EXPECT_EQ(member.tally(OpKind::kUpdate).index_trips, 20u);
  EXPECT_EQ(member.tally(OpKind::kUpdate).retries, 0u);
  EXPECT_EQ(world.problem, "");
}

TEST(ChimeInFlight, WhoCarriesOthersIsGivenUp_TheyDoNotWaitForEver) {
  // Given ten puts of a key in flight, of which the second carries the others. When the second is destroyed on its way.
  // Expect that the others end, and do not know what came of them.
  World world;
  Member member(world, {});
  member.Now(member.Put("other", "so that the table is known"));
  std::vector<Task<PutOutcome>> puts;
  for (int i = 0; i < 10; ++i) puts.push_back(member.Put("hot", "value " + std::to_string(i)));
  for (Task<PutOutcome>& put : puts) put.Start();
  world.Drive([&] { return puts[0].done(); });
  // The turn of the second begins by a timer that is due at once; then it sends a trip.
  for (int step = 0; step < 2; ++step) world.fabric.Step();
  ASSERT_FALSE(puts[1].done());
  puts.erase(puts.begin() + 1);
  world.Drive(
      [&] { return std::all_of(puts.begin(), puts.end(), [](const auto& put) { return put.done(); }); });
  for (size_t i = 1; i < puts.size(); ++i) {
    ASSERT_TRUE(puts[i].done());
    const Result<PutOutcome> outcome = puts[i].TakeResult();
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code(), ErrorCode::kOutcomeUnknown);
  }
}

}  // namespace
}  // namespace farside::index::chime
