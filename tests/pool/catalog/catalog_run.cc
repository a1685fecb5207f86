#include "tests/pool/catalog/catalog_run.h"

#include <string>
#include <vector>

namespace farside::pool {

namespace {

constexpr uint64_t kCells = 128 * 1024;

constexpr uint64_t kDestroyed = 0xdeaddeaddeaddead;

}  // namespace

Task<std::vector<fabric::FarAddr>> MakeCell(fabric::Op& op, Membership& member, CatalogScenario& scenario,
                                            TableInfo table) {
  const fabric::FarAddr cell = member.At(kCells + scenario.cells++ * kLine);
  const uint64_t word = WordOf(table);
  co_await op.InOrder(fabric::WriteObject(cell, word));
  co_return std::vector<fabric::FarAddr>{cell};
}

Task<Done> DestroyCell(fabric::Op& op, TableInfo table) {
  const uint64_t word = kDestroyed;
  co_await op.InOrder(fabric::WriteObject(table.roots[0], word));
  co_return Done{};
}

Task<Done> WaitForGrace(fabric::Op& op, Membership& member) {
  co_await member.Sync(op, member.known_epoch(), member.known_epoch(), /*raise=*/true);
  const uint64_t stamp = member.known_epoch();
  RegistryView view = co_await member.LookAround(op);
  while (view.safe_epoch <= stamp) {
    co_await op.Pause(Nanos(3000));
    co_await member.Sync(op, member.known_epoch(), member.known_epoch(), /*raise=*/true);
    view = co_await member.LookAround(op);
  }
  co_return Done{};
}

Task<Done> RunCatalogScript(Membership& member, CatalogScenario& scenario, int number,
                            const CatalogScript& script, size_t& next) {
  CatalogSession session(member, scenario, number);
  while (next < script.size()) co_await session.Perform(script[next++]);
  co_return Done{};
}

namespace {

// When all scripts have ended: every name is there or not and can be dropped, and every slot can be used.
Task<Done> AuditCatalog(Membership& member, CatalogScenario& scenario, int number,
                        std::vector<std::string> names) {
  CatalogSession session(member, scenario, number);
  for (const std::string& name : names) {
    for (Act act : {Act::kOpen, Act::kDrop, Act::kOpen, Act::kCreate, Act::kUse, Act::kDrop, Act::kOpen}) {
      const CatalogCall call{act, name, "audited"};
      co_await session.Perform(call);
    }
  }
  fabric::Op op(member.client(), fabric::OpKind::kMaintenance);
  std::vector<TableInfo> left = co_await session.catalog().List(op);
  if (!left.empty()) scenario.run.Problem("a table is listed that no client finds: " + left[0].name);
  // Slots of tables whose droppers have died come back when these are known to be dead.
  co_await ReleaseDeadSlots(member);
  const uint32_t slots = member.geometry().table_slots;
  for (uint32_t i = 0; i < slots; ++i) {
    const CatalogCall create{Act::kCreate, "slot " + std::to_string(i), "fills"};
    co_await session.Perform(create);
  }
  for (uint32_t i = 0; i < slots; ++i) {
    const CatalogCall drop{Act::kDrop, "slot " + std::to_string(i), ""};
    co_await session.Perform(drop);
  }
  co_return Done{};
}

}  // namespace

RunOutcome RunCatalog(fabric::sim::SimOptions options, const std::vector<CatalogScript>& scripts, Users users,
                      uint64_t* uses) {
  PoolRun run(std::move(options));
  CatalogScenario scenario{run, users};
  std::vector<size_t> next(scripts.size(), 0);
  for (size_t i = 0; i < scripts.size(); ++i) {
    run.Start([&, i](Membership& member) {
      return RunCatalogScript(member, scenario, static_cast<int>(i), scripts[i], next[i]);
    });
  }
  run.Drive();
  RunOutcome outcome = run.EndOfScripts();
  if (run.problem().empty()) {
    run.Start([&](Membership& member) {
      return AuditCatalog(member, scenario, static_cast<int>(scripts.size()), {"a", "b"});
    });
    run.Drive();
  }
  for (uint32_t slot = 0; slot < run.geometry().table_slots && run.problem().empty(); ++slot) {
    const TableWord word(run.Word(run.geometry().table_entry(slot)));
    if (word.state() != TableState::kFree) run.Problem("a slot of the catalog is lost");
  }
  const check::Verdict verdict = check::CheckLinearizable(scenario.history);
  if (!verdict.ok()) run.Problem(ToString(verdict));
  if (uses != nullptr) *uses += scenario.uses;
  outcome.problem = run.problem();
  return outcome;
}

std::vector<CatalogScript> SomeScripts(uint64_t seed, size_t clients, size_t calls) {
  Random random(seed ^ 0xca7a);
  std::vector<CatalogScript> scripts(clients);
  for (size_t client = 0; client < clients; ++client) {
    for (size_t i = 0; i < calls; ++i) {
      const Act act = std::array{Act::kCreate, Act::kCreate, Act::kOpen, Act::kUse,
                                 Act::kUse,    Act::kDrop,   Act::kList}[random.Below(7)];
      CatalogCall call;
      call.act = act;
      call.name = random.Chance(2, 3) ? "a" : "b";
      call.options = "by=" + std::to_string(client) + " nr=" + std::to_string(i);
      scripts[client].push_back(call);
    }
  }
  return scripts;
}

}  // namespace farside::pool
