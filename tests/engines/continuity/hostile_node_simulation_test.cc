// Nodes that answer anything, and far memory that says anything: a client of a continuity table ends with an
// error. And what becomes of memory when an answer is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "index/continuity/continuity.h"
#include "index/continuity/handlers.h"
#include "index/continuity/request.h"
#include "tests/engines/continuity/scenarios.h"
#include "tests/support/table_world.h"

namespace farside::index::continuity {
namespace {

using fabric::ClientId;
using fabric::NodeMemory;

// The answer to every change.
void AnswerChangesWith(TableWorld& world, const std::function<Reply()>& reply) {
  world.fabric.calls().Set(kChangeCall, [reply](NodeMemory&, ClientId, std::string_view) {
    return Result<std::string>(EncodeFixed(reply()));
  });
}

ErrorCode CodeOf(const Result<bool>& result) {
  EXPECT_FALSE(result.ok());
  return result.ok() ? ErrorCode::kContended : result.error().code();
}

TEST(ContinuityHostileNode, AsksForTheSameAgainAndAgain) {
  // Given a node that answers every change by asking for a group, for a larger table, or for the end of
  // growth
  // When a key is put
  // Expect kCorrupt
  for (const Needs needs : {Needs::kGroup, Needs::kTable, Needs::kEndOfGrowth}) {
    SCOPED_TRACE(static_cast<int>(needs));
    TableWorld world({.region_bytes = 1 << 20});
    TableMember member(world, "continuity", MakeContinuityEngine, {{"pairs", "2"}});
    AnswerChangesWith(world, [needs] { return Reply{.needs = needs}; });
    EXPECT_EQ(CodeOf(member.Try(member.Insert("a", "v"))), ErrorCode::kCorrupt);
    EXPECT_EQ(world.problem, "");
  }
}

TEST(ContinuityHostileNode, AnswersWhatCannotBe) {
  // Given a node whose answers name a table that is too large for the region, or say of a change that was not
  // made what it has linked
  // When a key is put
  // Expect kCorrupt
  std::vector<Reply> replies;
  for (const uint64_t doublings : {uint64_t{20}, uint64_t{31}, uint64_t{32}, uint64_t{63}, ~uint64_t{0}})
    replies.push_back({.needs = Needs::kTable, .doublings = doublings});
  replies.push_back({.needs = Needs::kGroup, .applied = true});
  replies.push_back({.needs = Needs::kGroup, .linked_group = true});
  replies.push_back({.needs = Needs::kTable, .linked_block = true});
  for (const Reply& reply : replies) {
    SCOPED_TRACE(fmt::format("needs {}, doublings {}", static_cast<int>(reply.needs), reply.doublings));
    TableWorld world({.region_bytes = 1 << 20});
    TableMember member(world, "continuity", MakeContinuityEngine, {{"pairs", "2"}});
    AnswerChangesWith(world, [&reply] { return reply; });
    EXPECT_EQ(CodeOf(member.Try(member.Insert("a", "v"))), ErrorCode::kCorrupt);
    EXPECT_EQ(world.problem, "");
  }
}

TEST(ContinuityHostileNode, ARootNamesATableThatIsLargerThanTheRegion) {
  // Given a cursor in the middle of a table, of which the root says then that it has 2^31 pairs and more
  // When the cursor goes on, statistics are asked for, the table is walked through or verified
  // Expect kCorrupt, and lookups that go by the root which the client knows
  TableWorld world({.region_bytes = 1 << 20});
  TableMember member(world, "continuity", MakeContinuityEngine, {{"pairs", "2"}});
  for (int i = 0; i < 12; ++i) member.Now(member.Put(fmt::format("k{}", i), "v"));
  Cursor cursor;
  EXPECT_FALSE(member.Now(member.Page(cursor)).empty());
  std::byte* current = world.memory().data() + member.roots()[0].offset + kCurrentOffset;
  StoreU64(current, TableWord(TableWord(LoadU64(current)).offset(), 31).word());
  member.Now(member.Maintain());
  EXPECT_FALSE(member.Now(member.Page(cursor)).empty());
  EXPECT_EQ(member.Now(member.Get("k0")), "v");
  const Result<TableStats> stats = member.Try(member.Stats());
  ASSERT_FALSE(stats.ok());
  EXPECT_EQ(stats.error().code(), ErrorCode::kCorrupt);
  pool::Reached reached;
  for (Result<Done> walked : {member.Try(member.Walk(reached)), member.Try(member.Verify())}) {
    ASSERT_FALSE(walked.ok());
    EXPECT_EQ(walked.error().code(), ErrorCode::kCorrupt);
  }
  EXPECT_EQ(world.problem, "");
}

TEST(ContinuityHostileNode, ALookupSaysWhichPairIsDamaged) {
  // Given a slot that counts and says nothing, or names a block of a size that there is not
  // When its key is looked up
  // Expect kCorrupt, with the address of the pair
  for (const bool block : {false, true}) {
    TableWorld world;
    TableMember member(world, "continuity", MakeContinuityEngine, {{"pairs", "1"}});
    member.Now(member.Put("a", block ? std::string(100, 'v') : "v"));
    const uint64_t pair = IndicatorOf(world, member, "a") - kIndicatorAt;
    const bool odd = HomeOf(Hash64(AsBytes("a")), 1).odd;
    std::byte* slot = world.memory().data() + pair + SlotInPair(odd ? kFirstGroup - 1 : 0);
    StoreU64(slot + (block ? 16 : 0), block ? 1 : 0);
    const Result<std::string> found = member.Try(member.Get("a"));
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code(), ErrorCode::kCorrupt);
    EXPECT_NE(found.error().message().find(fmt::format("{:#x} ", pair)), std::string::npos)
        << found.error().message();
  }
}

// Three even keys of one bucket of a table of so many pairs, not of one if it has twice as many.
std::vector<std::string> ThreeKeysOfOneBucket(uint64_t pairs) {
  std::map<uint64_t, std::vector<std::string>> by_pair;
  for (int i = 0;; ++i) {
    std::string key = fmt::format("k{}", i);
    const auto home = [&key](uint64_t of) { return HomeOf(Hash64(AsBytes(key)), of); };
    if (home(pairs).odd) continue;
    std::vector<std::string>& keys = by_pair[home(pairs).pair];
    const uint64_t half = home(2 * pairs).pair >= pairs ? 1 : 0;
    if (keys.size() < 2 ? half == 0 : half == 1) keys.push_back(std::move(key));
    if (keys.size() == 3) return keys;
  }
}

TEST(ContinuityGrowth, AChangeThatAwaitsItsEnd_GivesSignsOfLife) {
  // Given a table of many pairs in which a key has no place before it has doubled twice, and handlers that
  // take their time
  // When the key is put, which ends one growth and begins another
  // Expect a sync of the client in every quarter of a lease, and a change that is made
  constexpr uint64_t kPairs = 8192;
  constexpr Nanos kLease = std::chrono::milliseconds(10);
  TableWorld world({.region_bytes = 64 << 20, .durable = true});
  world.beats = false;
  OptionMap options = OneOfEach(false);
  options["pairs"] = std::to_string(kPairs);
  TableMember member(world, "continuity", MakeContinuityEngine, options);
  const std::vector<std::string> keys = ThreeKeysOfOneBucket(2 * kPairs);
  for (size_t i = 0; i < 2; ++i) member.Now(member.Put(keys[i], "v"));
  struct Moment {
    Nanos now;
    uint64_t verbs;
  };
  std::vector<Moment> moves;
  fabric::CallTable handlers;
  Serve(handlers);
  world.fabric.calls().Set(kMoveCall, [&](NodeMemory& memory, ClientId caller, std::string_view request) {
    moves.push_back({world.fabric.Now(), world.fabric.verbs_posted()});
    return handlers.Handle(kMoveCall, memory, caller, request);
  });
  member.Now(member.Put(keys[2], "v"));
  ASSERT_GE(moves.size(), kPairs / 32);
  const Nanos took = moves.back().now - moves.front().now;
  EXPECT_GE(took, kLease / 2);
  const uint64_t calls = 2 * (moves.size() - 1);  // each asks for the next one
  EXPECT_GE(moves.back().verbs - moves.front().verbs - calls, static_cast<uint64_t>(took / (kLease / 4)));
  for (const std::string& key : keys) EXPECT_EQ(member.Now(member.Get(key)), "v");
  EXPECT_EQ(world.problem, "");
}

// What a client does that is given up at its n-th step. False: there are not so many.
bool GivesUpAfter(uint64_t steps, const std::function<Task<bool>(TableMember& member)>& begin) {
  TableWorld world;
  {
    TableMember member(world, "continuity", MakeContinuityEngine, {{"pairs", "1"}});
    member.Now(member.Put("a", std::string(100, 'v')));
    member.Now(member.Put("b", std::string(200, 'v')));  // the client has room for another of that size
    bool ended = false;
    {
      Task<bool> change = begin(member);
      change.Start();
      for (uint64_t i = 0; i < steps && !change.done(); ++i) world.fabric.Step();
      ended = change.done();
    }
    member.Audit();
    EXPECT_EQ(world.problem, "") << "after " << steps << " steps";
    return !ended;
  }
}

TEST(ContinuityInDoubt, AChangeThatIsGivenUp_LeavesNoMemoryBehind) {
  // Given changes that bring a block, replace one, or remove one, of which each is destroyed after any of its
  // steps
  // When its client leaves
  // Expect that it has swept: every byte is free or reachable
  const std::vector<std::function<Task<bool>(TableMember&)>> changes = {
      [](TableMember& member) { return member.Insert("c", std::string(200, 'w')); },
      [](TableMember& member) { return member.Update("a", std::string(200, 'w')); },
      [](TableMember& member) { return member.Update("a", "short"); },
      [](TableMember& member) { return member.Delete("a"); }};
  for (size_t change = 0; change < changes.size(); ++change) {
    SCOPED_TRACE(change);
    uint64_t steps = 0;
    while (GivesUpAfter(steps, changes[change]) && !HasFailure()) ++steps;
    EXPECT_GE(steps, 2u);
  }
}

}  // namespace
}  // namespace farside::index::continuity
