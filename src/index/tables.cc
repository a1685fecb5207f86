#include "index/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "pool/beats.h"

namespace farside::index {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using pool::TableInfo;

namespace {

constexpr int kMostGraceRounds = 10'000;
constexpr Nanos kFirstPause = std::chrono::microseconds(100);
// A catalog that changes during every trip.
constexpr int kMostValidations = 1000;
// No catalog changes this often.
constexpr uint64_t kNeverValidated = ~uint64_t{0};

// What a table occupies, block by block.
class Collected final : public pool::Reach {
 public:
  void Mark(FarAddr block, uint64_t bytes) override { blocks.emplace_back(block, bytes); }
  std::vector<std::pair<FarAddr, uint64_t>> blocks;
};

Status CheckVersion(const TableInfo& info, const Engine& engine) {
  if (engine.layout_version() == info.engine_layout_version) return OkStatus();
  return Error(
      ErrorCode::kVersionMismatch,
      fmt::format(
          "table '{}' has layout version {} of engine {}; this build has {}: export it with the version "
          "that made it, and import it",
          Escape(info.name), info.engine_layout_version, Escape(info.engine), engine.layout_version()));
}

}  // namespace

std::string ToText(const OptionMap& options) {
  std::string text;
  for (const auto& [key, value] : options)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

Result<OptionMap> ParseOptions(std::string_view text) {
  OptionMap options;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return Error(ErrorCode::kCorrupt,
                   fmt::format("the options of a table have a word that is not k=v: '{}'", Escape(word)));
    }
    options.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return options;
}

Error NotDurable(std::string_view engine, std::string_view durable_engines) {
  return Error(
      ErrorCode::kUnsupported,
      fmt::format("the pool is durable, and engine {} promises nothing about power cuts; {}", Escape(engine),
                  durable_engines.empty() ? "no engine of this build does"
                                          : fmt::format("engines that do: {}", durable_engines)));
}

Tables::Tables(pool::PoolClient& pool, FindEngine find_engine, EngineNames durable_engines)
    : pool_(pool), find_engine_(std::move(find_engine)), durable_engines_(durable_engines) {}

pool::Membership& Tables::HomeOf(std::string_view name) {
  return pool_.member(pool::HomeOf(name, pool_.nodes()));
}

Result<std::shared_ptr<Engine>> Tables::EngineOf(const TableInfo& info) const {
  const Result<OptionMap> options = ParseOptions(info.options);
  if (!options.ok()) return options.error();
  Result<std::shared_ptr<Engine>> engine = find_engine_(info.engine, *options);
  if (!engine.ok()) return engine;
  if (Status same = CheckVersion(info, **engine); !same.ok()) return same.error();
  return engine;
}

void Tables::Confirm(OpenTable& table, uint64_t catalog_changes) {
  table.validated_at = catalog_changes;
  table.index->ConfirmTable(HomeOf(table.info.name), catalog_changes);
}

OpenTable Tables::OpenWith(std::shared_ptr<Engine> engine, TableInfo info, uint64_t validated_at) {
  OpenTable table;
  table.engine = std::move(engine);
  table.index = table.engine->Open(pool_, info.roots);
  table.info = std::move(info);
  Confirm(table, validated_at);
  return table;
}

Task<OpenTable> Tables::CreateOrOpen(Op& op, std::string name, std::string engine, OptionMap options) {
  const Result<std::shared_ptr<Engine>> made = find_engine_(engine, options);
  if (!made.ok()) co_return made.error();
  // All nodes of a pool are durable, or none (node_identity.h).
  if (pool_.member(NodeId{0}).geometry().durable && !(*made)->traits().durable)
    co_return NotDurable(engine, durable_engines_ == nullptr ? "" : durable_engines_());
  pool::TableSpec spec;
  spec.name = name;
  spec.engine = engine;
  spec.options = ToText((*made)->recorded_options());
  spec.engine_layout_version = (*made)->layout_version();
  for (size_t node = 0; node < pool_.nodes(); ++node) spec.nodes.push_back(static_cast<NodeId>(node));
  const std::string wanted = spec.options;

  co_await pool_.ComeOnline(op);
  const pool::PoolClient::UnpinnedWait stays_online(pool_);
  pool::Membership& home = HomeOf(name);
  const uint64_t validated_at = home.control().catalog_changes;
  pool::Catalog catalog(home);
  // From here to the end: what is allocated is reachable when the catalog says so.
  std::optional<pool::PoolClient::Pin> pin;
  pool::Catalog::MakeRoots make_roots = [this, &pin, &made](Op& make_op, TableInfo info) {
    pin.emplace(pool_.Begin());
    return (*made)->Create(make_op, pool_, std::move(info.nodes));
  };
  const pool::CreateOutcome outcome = co_await catalog.Create(op, std::move(spec), std::move(make_roots));
  if (outcome.table.engine != engine || outcome.table.options != wanted) {
    co_return Error(
        ErrorCode::kAlreadyExists,
        fmt::format("table '{}' exists with engine {} and options '{}'; drop it first, or open it as it is",
                    Escape(name), Escape(outcome.table.engine), Escape(outcome.table.options)));
  }
  if (Status same = CheckVersion(outcome.table, **made); !same.ok()) co_return same.error();
  OpenTable table = OpenWith(*made, outcome.table, validated_at);
  table.created = outcome.created;
  co_return std::move(table);
}

Task<OpenTable> Tables::Open(Op& op, std::string name) {
  pool::Membership& home = HomeOf(name);
  const uint64_t validated_at = home.control().catalog_changes;
  pool::Catalog catalog(home);
  TableInfo info = co_await catalog.Open(op, name);
  Result<std::shared_ptr<Engine>> engine = EngineOf(info);
  if (!engine.ok()) co_return engine.error();
  co_return OpenWith(std::move(*engine), std::move(info), validated_at);
}

Result<OpenTable> Tables::OpenKnown(const TableInfo& info, const OptionMap& options) {
  Result<std::shared_ptr<Engine>> engine = find_engine_(info.engine, options);
  if (!engine.ok()) return engine.error();
  if (Status same = CheckVersion(info, **engine); !same.ok()) return same.error();
  return OpenWith(std::move(*engine), info, kNeverValidated);
}

Task<Done> Tables::Validate(Op& op, OpenTable& table) {
  pool::Membership& home = HomeOf(table.info.name);
  // INVARIANT catalog/5: while this waits, a sync of another task may learn of a drop that came after the
  // READ. The operation would begin with the epoch of that sync, and the grace of the drop would not wait for
  // it.
  for (int attempt = 0; attempt < kMostValidations; ++attempt) {
    const uint64_t changes = home.control().catalog_changes;
    if (changes == table.validated_at) co_return Done{};
    pool::Catalog catalog(home);
    const bool there = co_await catalog.StillThere(op, table.info);
    if (!there) {
      co_return Error(ErrorCode::kNotFound, fmt::format("table '{}' was dropped", Escape(table.info.name)));
    }
    Confirm(table, changes);
  }
  co_return Error(ErrorCode::kContended, "the catalog changes all the time; try again later");
}

Task<std::vector<TableInfo>> Tables::List(Op& op) {
  std::vector<TableInfo> all;
  for (size_t node = 0; node < pool_.nodes(); ++node) {
    pool::Catalog catalog(pool_.member(static_cast<NodeId>(node)));
    std::vector<TableInfo> tables = co_await catalog.List(op);
    std::move(tables.begin(), tables.end(), std::back_inserter(all));
  }
  std::sort(all.begin(), all.end(), [](const TableInfo& a, const TableInfo& b) { return a.name < b.name; });
  co_return std::move(all);
}

Task<Done> Tables::Walk(Op& op, pool::Reach& reach) {
  pool::Beats beats(pool_);
  for (size_t node = 0; node < pool_.nodes(); ++node) {
    pool::Catalog catalog(pool_.member(static_cast<NodeId>(node)));
    const std::vector<TableInfo> tables = co_await catalog.TablesToWalk(op);
    for (const TableInfo& info : tables) {
      const Result<std::shared_ptr<Engine>> engine = EngineOf(info);
      if (!engine.ok()) co_return engine.error();
      const std::unique_ptr<Index> index = (*engine)->Open(pool_, info.roots);
      co_await index->Walk(op, reach);
      if (beats.Due()) co_await beats.Beat(op);
    }
  }
  co_return Done{};
}

Status Tables::CheckNodes() const {
  for (size_t node = 0; node < pool_.nodes(); ++node) {
    if (pool_.IsMember(static_cast<NodeId>(node))) continue;
    return Error(
        ErrorCode::kUnavailable,
        fmt::format("memory node {} is out of reach, and to drop a table takes all nodes of the pool; "
                    "try again when it is back",
                    node));
  }
  return OkStatus();
}

// Until every client on every node of the table has moved past the call. Those of a node that is lost on the
// way never do.
Task<Done> Tables::WaitForGrace(Op& op, size_t nodes) {
  // Shared with the callbacks, which may outlive this coroutine if an error ends it.
  const auto waiting = std::make_shared<size_t>(nodes);
  for (size_t node = 0; node < nodes; ++node) {
    pool_.AfterGrace(static_cast<NodeId>(node), [waiting] { --*waiting; });
  }
  const Nanos longest = std::max(pool_.member(NodeId{0}).options().lease / 64, Nanos(1));
  Nanos pause = std::min(kFirstPause, longest);
  for (int round = 0; *waiting > 0; ++round) {
    if (round == kMostGraceRounds)
      co_return Error(ErrorCode::kContended, "other clients did not move on; try again later");
    co_await pool_.GoOffline(op);  // if it can: then it does not wait for itself
    co_await pool_.Maintain(op);
    if (Status there = CheckNodes(); !there.ok()) co_return there.error();
    if (*waiting > 0) co_await op.Pause(pause);
    pause = std::min(2 * pause, longest);
  }
  co_await pool_.ComeOnline(op);
  co_return Done{};
}

// INVARIANT off/3, catalog/5: grace is over, so no client uses the table, and none adds to its counters. What
// it occupies is given back at once.
Task<Done> Tables::FreeTable(Op& op, TableInfo info) {
  co_await pool_.ComeOnline(op);
  const Result<std::shared_ptr<Engine>> engine = EngineOf(info);
  if (!engine.ok()) co_return engine.error();
  const std::unique_ptr<Index> index = (*engine)->Open(pool_, info.roots);
  Collected collected;
  const pool::PoolClient::Pin pin = pool_.Begin();
  co_await index->Walk(op, collected);
  // A walk may come to a block twice; it is retired once.
  std::sort(collected.blocks.begin(), collected.blocks.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  collected.blocks.erase(std::unique(collected.blocks.begin(), collected.blocks.end(), same),
                         collected.blocks.end());
  for (const auto& [block, bytes] : collected.blocks) {
    pool_.allocator(block.node).FreeUnused(block, bytes, pin.epoch(block.node));
  }
  co_await pool_.GiveBackUnused(op);
  co_return Done{};
}

Task<Done> Tables::Drop(Op& op, std::string name) {
  pool::Catalog catalog(HomeOf(name));
  // Only its engine can tell what belongs to the table.
  const TableInfo found = co_await catalog.Open(op, name);
  const Result<std::shared_ptr<Engine>> engine = EngineOf(found);
  if (!engine.ok()) co_return engine.error();
  if (Status there = CheckNodes(); !there.ok()) co_return there.error();
  pool::Catalog::WaitForGrace wait_for_grace = [this](Op& wait_op) {
    return WaitForGrace(wait_op, pool_.nodes());
  };
  pool::Catalog::FreeTable free_table = [this](Op& free_op, TableInfo info) {
    return FreeTable(free_op, std::move(info));
  };
  co_await catalog.Drop(op, std::move(name), std::move(wait_for_grace), std::move(free_table));
  co_return Done{};
}

}  // namespace farside::index
