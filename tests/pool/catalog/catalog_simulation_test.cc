// The catalog under concurrency and faults: names are unique, tables are there or not, and nothing is lost.
#include "tests/pool/catalog/catalog_run.h"

#include <gtest/gtest.h>

#include "tests/support/sanitized.h"

namespace farside::pool {
namespace {

CatalogCall Create(std::string name, std::string options) {
  return CatalogCall{Act::kCreate, std::move(name), std::move(options)};
}
CatalogCall Do(Act act, std::string name) { return CatalogCall{act, std::move(name), ""}; }

TEST(PoolCatalog, ConcurrentCreatesOfOneName_ExactlyOneCreates) {
  // Given four clients that create one table at once, in any interleaving.
  // Expect that one of them creates it, and that all have the same table open.
  for (uint64_t seed = 1; seed <= 300 / kFewer; ++seed) {
    PoolRun run(PoolChaos(seed, /*faults=*/false));
    CatalogScenario scenario{run};
    std::vector<CatalogScript> scripts;
    for (int i = 0; i < 4; ++i)
      scripts.push_back({Create("a", "by=" + std::to_string(i)), Do(Act::kUse, "a")});
    std::vector<size_t> next(4, 0);
    for (int i = 0; i < 4; ++i) {
      run.Start(
          [&, i](Membership& member) { return RunCatalogScript(member, scenario, i, scripts[i], next[i]); });
    }
    run.Drive();
    ASSERT_EQ(run.problem(), "") << "seed " << seed;
    int created = 0;
    for (const check::Operation& operation : scenario.history.operations()) {
      if (std::get<check::Applied>(operation.outcome).applied) ++created;
    }
    ASSERT_EQ(created, 1) << "seed " << seed;
    ASSERT_EQ(scenario.cells, 1u) << "seed " << seed;
  }
}

TEST(PoolCatalog, ManyClients_HistoriesAreLinearizable) {
  // Given three clients that create, open, use and drop two tables, in worlds that break nothing.
  // Expect a linearizable history, no use of what was freed, no client cut off, and no slot lost.
  uint64_t uses = 0;
  for (uint64_t seed = 1; seed <= 300 / kFewer; ++seed) {
    const RunOutcome outcome =
        RunCatalog(PoolChaos(seed, /*faults=*/false), SomeScripts(seed, 3, 5), Users::kFollowTheRule, &uses);
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
  }
  EXPECT_GT(uses, 300u / kFewer);
}

TEST(PoolCatalog, ManyClientsWithFaultsByChance) {
  // Given the same, with clients that die, sleep and lose completions at any moment.
  for (uint64_t seed = 1; seed <= 300 / kFewer; ++seed) {
    const RunOutcome outcome = RunCatalog(PoolChaos(seed, /*faults=*/true), SomeScripts(seed, 3, 5));
    ASSERT_EQ(outcome.problem, "") << "seed " << seed;
  }
}

TEST(PoolCatalog, CreatorAndDropperDieAtEveryVerb_SurvivorsGoOn) {
  // Given a client that creates, uses and drops a table, and another that does the same with its name.
  // When each of their verbs in turn is the place of each kind of fault.
  // Expect that the name is there or not, never damaged; that the other goes on; and that no slot is lost.
  const std::vector<CatalogScript> scripts = {
      {Create("a", "first=1"), Do(Act::kUse, "a"), Do(Act::kDrop, "a"), Create("a", "first=2")},
      {Do(Act::kOpen, "a"), Create("a", "second=1"), Do(Act::kUse, "a")},
  };
  uint64_t faults = 0;
  for (uint64_t seed = 1; seed <= 4 / std::min<uint64_t>(kFewer, 4); ++seed) {
    const auto run = [&](const fabric::sim::SimOptions& options) { return RunCatalog(options, scripts); };
    ASSERT_EQ(ForEveryFault(PoolChaos(seed, /*faults=*/false), run, faults), "");
  }
  EXPECT_GT(faults, 300u);
}

TEST(PoolCatalog, RandomScriptsWithAFaultAtEveryVerb) {
  uint64_t faults = 0;
  for (uint64_t seed = 1; seed <= 8 / kFewer; ++seed) {
    const std::vector<CatalogScript> scripts = SomeScripts(seed, 2, 2);
    const auto run = [&](const fabric::sim::SimOptions& options) { return RunCatalog(options, scripts); };
    ASSERT_EQ(ForEveryFault(PoolChaos(seed, /*faults=*/false), run, faults), "");
  }
  EXPECT_GT(faults, 200u / kFewer);
}

TEST(PoolCatalog, UserThatIgnoresTheChanges_IsCaught) {
  // Given users that do not ask whether their table is still there.
  // Expect that one of them meets a table that was freed: the tests above can fail.
  uint64_t caught = 0;
  for (uint64_t seed = 1; seed <= 300 / kFewer && caught == 0; ++seed) {
    const RunOutcome outcome =
        RunCatalog(PoolChaos(seed, /*faults=*/false), SomeScripts(seed, 3, 8), Users::kIgnoreTheRule);
    if (!outcome.problem.empty()) ++caught;
  }
  EXPECT_GT(caught, 0u);
}

// ---- what a sweep may rely on

Task<Done> BeatUntil(fabric::Op& op, Membership& member, bool& waiting, const bool& go_on) {
  waiting = true;
  while (!go_on) {
    co_await member.Sync(op, member.known_epoch(), member.known_epoch(), /*raise=*/false);
    co_await op.Pause(kTestLease / 8);
  }
  co_return Done{};
}

Task<Done> DropSlowly(Membership& member, bool& waiting, const bool& go_on) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  Catalog catalog(member);
  const Catalog::WaitForGrace wait = [&](fabric::Op& grace) {
    return BeatUntil(grace, member, waiting, go_on);
  };
  const Catalog::FreeTable destroy = DestroyCell;
  co_await catalog.Drop(op, "a", wait, destroy);
  co_return Done{};
}

Task<Done> CreateOne(Membership& member, CatalogScenario& scenario, std::string name) {
  CatalogSession session(member, scenario, 0);
  const CatalogCall create{Act::kCreate, std::move(name), "x=1"};
  co_await session.Perform(create);
  co_return Done{};
}

struct Walked {
  bool done = false;
  uint64_t contended = 0;
  std::vector<std::string> names;
};

Task<Done> AskWhatToWalk(Membership& member, Walked& walked) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  Catalog catalog(member);
  while (!walked.done) {
    Result<std::vector<TableInfo>> tables = co_await catalog.TablesToWalk(op).Outcome();
    if (tables.ok()) {
      for (const TableInfo& table : *tables) walked.names.push_back(table.name);
      walked.done = true;
    } else if (tables.error().code() == ErrorCode::kContended) {
      ++walked.contended;
      co_await op.Pause(kTestLease / 8);
    } else {
      co_return tables.error();
    }
  }
  co_return Done{};
}

TEST(PoolCatalog, SweepWaitsForALivingDropper) {
  // Given two tables, of which a living client drops one.
  // Expect that a sweep is told to come later until the dropper is done, and then to walk the other table.
  PoolRun run(PoolCalm());
  CatalogScenario scenario{run};
  run.Start([&](Membership& member) { return CreateOne(member, scenario, "a"); });
  run.Start([&](Membership& member) { return CreateOne(member, scenario, "b"); });
  run.Drive();
  bool waiting = false;
  bool go_on = false;
  run.Start([&](Membership& member) { return DropSlowly(member, waiting, go_on); });
  while (!waiting) ASSERT_TRUE(run.world().Step());
  Walked walked;
  run.Start([&](Membership& member) { return AskWhatToWalk(member, walked); });
  while (walked.contended < 20) ASSERT_TRUE(run.world().Step());
  EXPECT_FALSE(walked.done);
  go_on = true;
  run.Drive();
  EXPECT_EQ(run.problem(), "");
  EXPECT_EQ(walked.names, std::vector<std::string>{"b"});
}

Task<Done> DropAndTellWho(Membership& member, uint64_t& who) {
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  Catalog catalog(member);
  who = Number(member.client().id());
  const Catalog::WaitForGrace wait = [&](fabric::Op& grace) { return WaitForGrace(grace, member); };
  const Catalog::FreeTable destroy = DestroyCell;
  co_await catalog.Drop(op, "a", wait, destroy);
  co_return Done{};
}

TEST(PoolCatalog, SweepFinishesAndAnnouncesTheDropOfADeadClient) {
  // Given a client that dies as soon as its drop is decided, before it could announce it.
  // When a client asks what to walk.
  // Expect the table to be gone, its slot to be free, and the drop to be announced before that.
  PoolRun run(PoolCalm());
  CatalogScenario scenario{run};
  run.Start([&](Membership& member) { return CreateOne(member, scenario, "a"); });
  run.Drive();
  uint64_t dropper = 0;
  run.Start([&](Membership& member) { return DropAndTellWho(member, dropper); });
  const uint64_t entry = run.geometry().table_entry(0);
  while (TableWord(run.Word(entry)).state() != TableState::kDropping) ASSERT_TRUE(run.world().Step());
  run.world().Crash(static_cast<fabric::ClientId>(dropper));
  const uint64_t changes = run.Word(kCatalogChangesOffset);
  Walked walked;
  run.Start([&](Membership& member) { return AskWhatToWalk(member, walked); });
  while (TableWord(run.Word(entry)).state() == TableState::kDropping) ASSERT_TRUE(run.world().Step());
  EXPECT_GT(run.Word(kCatalogChangesOffset), changes);
  run.Drive();
  EXPECT_EQ(run.problem(), "");
  EXPECT_TRUE(walked.done);
  EXPECT_TRUE(walked.names.empty());
}

}  // namespace
}  // namespace farside::pool
