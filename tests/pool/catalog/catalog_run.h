// Clients that create, open, use and drop tables in one catalog, with faults; checked as a map from names to
// options.
//
// Creating is an insert, opening a get, dropping a delete: so the history of a run is checked for
// linearizability. A table is a cell of far memory with a word that only this table has. A client that has it
// open uses it within operations, by the rule of catalog/5, and must find that word; a client that drops it
// destroys the word after the grace period.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "check/history.h"
#include "check/linearizability.h"
#include "pool/catalog/catalog.h"
#include "tests/pool/pool_run.h"

namespace farside::pool {

enum class Act : uint8_t { kCreate, kOpen, kUse, kDrop, kList };
struct CatalogCall {
  Act act = Act::kOpen;
  std::string name;
  std::string options;  // of kCreate; another one each time
};
using CatalogScript = std::vector<CatalogCall>;

// Whether a user of a table looks at catalog_changes, as it must.
enum class Users : uint8_t { kFollowTheRule, kIgnoreTheRule };

struct CatalogScenario {
  PoolRun& run;
  Users users = Users::kFollowTheRule;
  check::History history;
  uint64_t cells = 0;
  uint64_t uses = 0;
};

inline uint64_t WordOf(const TableInfo& table) { return Hash64(table.name, table.incarnation); }

Task<std::vector<fabric::FarAddr>> MakeCell(fabric::Op& op, Membership& member, CatalogScenario& scenario,
                                            TableInfo table);

Task<Done> DestroyCell(fabric::Op& op, TableInfo table);

Task<Done> WaitForGrace(fabric::Op& op, Membership& member);

// One client: its catalog, and the tables that it has open.
class CatalogSession {
 public:
  CatalogSession(Membership& member, CatalogScenario& scenario, int number)
      : member_(member), catalog_(member), scenario_(scenario), number_(number) {}

  Task<Done> Perform(CatalogCall call) {
    fabric::Op op(member_.client(), fabric::OpKind::kMaintenance);
    switch (call.act) {
      case Act::kCreate:
      case Act::kDrop:
      case Act::kOpen: co_await Record(op, call); break;
      case Act::kUse: co_await Use(op, call.name); break;
      case Act::kList: {
        std::vector<TableInfo> tables = co_await catalog_.List(op);
        for (const TableInfo& table : tables) {
          if (table.options.empty()) scenario_.run.Problem("a table without its options is listed");
        }
        break;
      }
    }
    // No operation is in flight.
    co_await member_.Sync(op, member_.known_epoch(), member_.known_epoch(), /*raise=*/false);
    co_return Done{};
  }

  Catalog& catalog() { return catalog_; }

 private:
  struct Opened {
    TableInfo table;
    uint64_t validated_at = 0;
  };

  static check::Call Recorded(const CatalogCall& call) {
    if (call.act == Act::kCreate) return check::Call::Insert(call.name, call.options);
    return call.act == Act::kDrop ? check::Call::Delete(call.name) : check::Call::Get(call.name);
  }

  Task<Done> Record(fabric::Op& op, CatalogCall call) {
    const check::OpId id = scenario_.history.Invoke(number_, Recorded(call));
    Result<check::Outcome> outcome = co_await Try(op, call).Outcome();
    if (outcome.ok()) {
      scenario_.history.Return(id, *outcome);
      co_return Done{};
    }
    if (outcome.error().code() == ErrorCode::kOutcomeUnknown) {
      scenario_.history.LoseAnswer(id);
    } else {
      scenario_.history.Refuse(id, outcome.error().ToString());
    }
    co_return outcome.error();
  }

  Task<check::Outcome> Try(fabric::Op& op, CatalogCall call) {
    const uint64_t validated_at = member_.control().catalog_changes;
    if (call.act == Act::kCreate) {
      TableSpec spec;
      spec.name = call.name;
      spec.engine = "cell";
      spec.options = call.options;
      spec.nodes = {fabric::NodeId{0}};
      const Catalog::MakeRoots make = [this](fabric::Op& making, TableInfo table) {
        return MakeCell(making, member_, scenario_, std::move(table));
      };
      CreateOutcome outcome = co_await catalog_.Create(op, spec, make);
      opened_[call.name] = Opened{outcome.table, validated_at};
      co_return check::Outcome(check::Applied{outcome.created});
    }
    if (call.act == Act::kDrop) {
      const Catalog::WaitForGrace wait = [this](fabric::Op& waiting) {
        return WaitForGrace(waiting, member_);
      };
      const Catalog::FreeTable destroy = DestroyCell;
      const Result<Done> dropped = co_await catalog_.Drop(op, call.name, wait, destroy).Outcome();
      if (!dropped.ok() && dropped.error().code() != ErrorCode::kNotFound) co_return dropped.error();
      co_return check::Outcome(check::Applied{dropped.ok()});
    }
    Result<TableInfo> table = co_await catalog_.Open(op, call.name).Outcome();
    if (!table.ok() && table.error().code() != ErrorCode::kNotFound) co_return table.error();
    check::Found found;
    if (table.ok()) {
      found.value = table->options;
      opened_[call.name] = Opened{*table, validated_at};
    }
    co_return check::Outcome(found);
  }

  // An operation on the table, in the middle of which the client syncs.
  Task<Done> Use(fabric::Op& op, std::string name) {
    const auto found = opened_.find(name);
    if (found == opened_.end()) co_return Done{};
    const uint64_t began = member_.known_epoch();
    const uint64_t changes = member_.control().catalog_changes;
    Opened& opened = found->second;
    if (changes != opened.validated_at && scenario_.users == Users::kFollowTheRule) {
      const bool there = co_await catalog_.StillThere(op, opened.table);
      opened.validated_at = changes;
      if (!there) {
        opened_.erase(found);
        co_return Done{};
      }
    }
    ++scenario_.uses;
    for (int i = 0; i < 3; ++i) {
      const uint64_t word = co_await op.InOrder(fabric::Read<uint64_t>(opened.table.roots[0]));
      if (word != WordOf(opened.table))
        scenario_.run.Problem("a table was freed under a client that uses it");
      co_await member_.Sync(op, began, began, /*raise=*/true);
    }
    co_return Done{};
  }

  Membership& member_;
  Catalog catalog_;
  CatalogScenario& scenario_;
  const int number_;
  std::map<std::string, Opened> opened_;
};

Task<Done> RunCatalogScript(Membership& member, CatalogScenario& scenario, int number,
                            const CatalogScript& script, size_t& next);

RunOutcome RunCatalog(fabric::sim::SimOptions options, const std::vector<CatalogScript>& scripts,
                      Users users = Users::kFollowTheRule, uint64_t* uses = nullptr);

// Scripts that meet on two names.
std::vector<CatalogScript> SomeScripts(uint64_t seed, size_t clients, size_t calls);

}  // namespace farside::pool
