// Every engine keeps what it states as its traits (index/index.h). Order and fixed sizes are tested in
// scan_test.cc.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "store/engines.h"
#include "tests/engines/conformance/engine.h"
#include "tests/support/table_world.h"
#include "tests/support/temporary_folder.h"

namespace farside::conformance {
namespace {

using fabric::OpTally;
using fabric::VerbKind;
using fabric::VerbTally;
using fabric::sim::FaultKind;

// Keys and values of 8 bytes, which every engine takes.
std::string Key(size_t i) { return fmt::format("key-{:04}", i); }
std::string Value(size_t i) { return fmt::format("val-{:04}", i); }

// As users get it, and with every set of options for small tables.
std::vector<EngineUnderTest> EveryEngine() {
  std::vector<EngineUnderTest> engines = RoomyEngines();
  for (const auto& more : {StressedEngines(), OrderedEngines()}) {
    for (const EngineUnderTest& engine : more) {
      if (std::ranges::find(engines, engine.label, &EngineUnderTest::label) == engines.end())
        engines.push_back(engine);
    }
  }
  std::erase_if(engines, [](const EngineUnderTest& engine) { return engine.label == "words_only"; });
  return engines;
}

class EngineTraitsTest : public testing::TestWithParam<EngineUnderTest> {};
INSTANTIATE_TEST_SUITE_P(Engines, EngineTraitsTest, testing::ValuesIn(EveryEngine()), LabelOf);

TEST_P(EngineTraitsTest, APersistentTable_IsFoundByAClientThatComesAfterAllOthers) {
  // Given a table in a file, some records of which were replaced and deleted. When all clients have left, and
  // another one opens the file. Expect exactly the records that were left.
  if (!GetParam().traits.persistent) GTEST_SKIP() << "not stated";
  const TemporaryFolder folder;
  const std::string url = "file:" + folder.path() + "/pool";
  constexpr size_t kRecords = 40;
  {
    Pool pool = Must(Pool::Open(url + "?size=16MiB"));
    const Table table =
        Must(pool.CreateTable("t", {.engine = GetParam().engine, .options = GetParam().options}));
    Session session = Must(pool.NewSession());
    for (size_t i = 0; i < kRecords; ++i) Must(session.Put(table, Key(i), Value(0)));
    for (size_t i = 0; i < kRecords; ++i) Must(session.Put(table, Key(i), Value(i)));
    for (size_t i = 0; i < kRecords; i += 4) Must(session.Delete(table, Key(i)));
    Must(session.Close());
  }
  Pool pool = Must(Pool::Open(url));
  const Table table = Must(pool.OpenTable("t"));
  Session session = Must(pool.NewSession());
  for (size_t i = 0; i < kRecords; ++i) {
    const std::optional<std::string> value = Must(session.Get(table, Key(i)));
    EXPECT_EQ(value.value_or("absent"), i % 4 == 0 ? "absent" : Value(i)) << i;
  }
}

// What a client has posted that changes far memory.
uint64_t Changes(fabric::Client& client) {
  uint64_t changes = 0;
  const OpTally total = client.counters().Total();
  for (const VerbTally& tally : total.by_purpose) {
    for (const VerbKind kind :
         {VerbKind::kWrite, VerbKind::kCas, VerbKind::kMaskedCas, VerbKind::kFaa, VerbKind::kCall})
      changes += tally.verbs[static_cast<size_t>(kind)];
  }
  return changes;
}

class Member : public index::TableMember {
 public:
  Member(index::TableWorld& world, const EngineUnderTest& engine)
      : TableMember(world, engine.engine, engine.make, engine.options) {}
};

Task<Done> ChangeSome(Member& member) {
  co_await member.Put(Key(1), Value(9));
  co_await member.Delete(Key(2));
  for (size_t i = 10; i < 14; ++i) co_await member.Put(Key(i), Value(i));
  co_return Done{};
}

// A client dies at the nth verb of some changes, and another one joins and walks. False: there is no such
// verb. It is alone meanwhile: no other client holds up what it waits for.
bool WalkAfterDeathAt(uint64_t nth, FaultKind kind, const EngineUnderTest& engine) {
  index::TableWorld world;
  Member first(world, engine);
  first.Now(first.Maintain());  // knows of the new table: a put that waits for growth goes on
  for (size_t i = 0; i < 6; ++i) first.Now(first.Put(Key(i), Value(i)));
  first.Now(first.Leave());
  Member dying(world, engine);
  dying.Now(dying.Maintain());
  if (!dying.RunAndDieAt(nth, kind, ChangeSome(dying))) return false;
  Member survivor(world, engine);
  world.beats = false;  // so that the survivor posts nothing but its walk
  const uint64_t before = Changes(survivor.client());
  pool::Reached reached;
  survivor.Now(survivor.Walk(reached));
  EXPECT_EQ(Changes(survivor.client()), before) << "verb " << nth;
  EXPECT_EQ(world.problem, "") << "verb " << nth;
  return true;
}

TEST_P(EngineTraitsTest, AReadOnlyWalk_ChangesNothing_WhateverTheDeadHaveLeft) {
  // Given a table in which a client died while it changed keys, at any of its verbs. When another client
  // walks through the table. Expect that it posts READs only.
  if (!GetParam().traits.read_only_walk) GTEST_SKIP() << "not stated";
  for (const FaultKind kind : {FaultKind::kCrashMid, FaultKind::kCrashAfter}) {
    for (uint64_t nth = 0; WalkAfterDeathAt(nth, kind, GetParam()) && !HasFailure(); ++nth) continue;
  }
}

TEST(EngineList, IsSortedByRank_AndKnowsItsDefault) {
  // Given the list of all engines. Expect engines that keep records first, by rank, and that the first is the
  // default.
  const std::span<const store::EngineEntry> engines = store::Engines();
  ASSERT_FALSE(engines.empty());
  EXPECT_EQ(store::DefaultEngine(), engines.front().name);
  EXPECT_TRUE(std::ranges::is_sorted(engines, {}, &store::EngineEntry::rank));
  for (const store::EngineEntry& entry : store::AllEngines()) {
    const std::shared_ptr<index::Engine> engine = Must(entry.make({}));
    EXPECT_EQ(engine->name(), entry.name);
    const bool listed = std::ranges::find(engines, entry.name, &store::EngineEntry::name) != engines.end();
    EXPECT_EQ(listed, engine->traits().keeps_records) << entry.name;
  }
}

TEST(EngineList, MutantsHaveDistinctNames_ThatBeginWithTheirEngine) {
  // Given the planted bugs of all engines. Expect that no two have one name, and that each names its engine.
  std::vector<std::string> names;
  for (const store::EngineEntry& entry : store::AllEngines()) {
    for (const MutantName& mutant : entry.mutants) {
      EXPECT_TRUE(std::string(mutant.text).starts_with(std::string(entry.name) + "/")) << mutant.text;
      names.emplace_back(mutant.text);
    }
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace farside::conformance
