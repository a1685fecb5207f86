// A simulated pool, and clients that have one table open, moved by hand: which does what when, and which dies
// where.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/op.h"
#include "fabric/sim/sim.h"
#include "index/index.h"
#include "pool/fsck/fsck.h"
#include "pool/region/superblock.h"
#include "store/engines.h"
#include "tests/support/table_tasks.h"

namespace farside::index {

struct WorldOptions {
  uint64_t seed = 1;
  uint64_t region_bytes = 4 << 20;
  size_t nodes = 1;
  bool durable = false;  // the nodes survive power cuts
  fabric::sim::Chaos chaos = fabric::sim::Chaos::Calm();
};

class TableMember;

class TableWorld {
 public:
  explicit TableWorld(const WorldOptions& options = {})
      : fabric({.seed = options.seed,
                .region_bytes = std::vector<uint64_t>(options.nodes, options.region_bytes),
                .durable = options.durable,
                .chaos = options.chaos}) {
    store::RegisterHandlers(fabric.calls());
    for (size_t node = 0; node < options.nodes; ++node) {
      geometries.push_back(*pool::FormatVolatile(fabric.memory(static_cast<fabric::NodeId>(node)),
                                                 {.chunk_bytes = 4096, .durable = options.durable},
                                                 {1, node}));
    }
  }

  // Of the first node.
  std::span<std::byte> memory() const {
    return const_cast<fabric::sim::SimFabric&>(fabric).memory(fabric::NodeId{0});
  }
  // A client dies at the n-th verb from here on.
  void Arm(uint64_t nth, fabric::sim::FaultKind kind) {
    fabric.set_fault({fabric.verbs_posted() + nth, kind});
    armed_ = true;
  }
  void Disarm() {
    fabric.set_fault({~uint64_t{0}, fabric::sim::FaultKind::kCrashBefore});
    armed_ = false;
  }
  // Steps until it is over, or nothing happens any more. Every client gives signs of life meanwhile, but for
  // those that could be hit by a fault that is meant for another client.
  template <class Over>
  void Drive(Over over) {
    while (!over()) {
      const bool quiet = !beats || (armed_ && !fabric.fault_fired());
      if (!quiet && fabric.Now() - last_beat_ >= std::chrono::milliseconds(1)) {
        last_beat_ = fabric.Now();
        BeatAll();
      }
      if (!fabric.Step()) return;
    }
  }
  // Notes the first thing that went wrong.
  void Complain(std::string what) {
    if (problem.empty()) problem = std::move(what);
  }

  fabric::sim::SimFabric fabric;
  std::vector<pool::Geometry> geometries;
  std::string problem;
  std::vector<TableMember*> members;
  bool beats = true;

 private:
  void BeatAll();

  Nanos last_beat_{0};
  bool armed_ = false;
};

using MakeEngine = Result<std::shared_ptr<Engine>> (*)(const OptionMap& options);

class TableMember : public TableTasks {
 public:
  TableMember(TableWorld& world, std::string engine, MakeEngine make_engine, OptionMap options)
      : TableTasks(std::move(*world.fabric.Connect())), world_(world) {
    const FindEngine find = [make_engine](std::string_view, const OptionMap& wanted) {
      return make_engine(wanted);
    };
    Now(Join(find, std::chrono::milliseconds(10), std::move(engine), std::move(options)));
    world_.members.push_back(this);
  }
  ~TableMember() { std::erase(world_.members, this); }

  const std::vector<fabric::FarAddr>& roots() const { return table_->info.roots; }
  bool crashed() const { return static_cast<const fabric::sim::SimClient&>(*client_).crashed(); }
  const fabric::OpTally& tally(fabric::OpKind kind,
                               fabric::OpOutcome outcome = fabric::OpOutcome::kDone) const {
    return client_->counters().at(kind, outcome);
  }

  // Runs a task to its end; what fails is a problem of the scenario. Steps the whole world.
  template <class T>
  T Now(Task<T> task) {
    Result<T> result = Try(std::move(task));
    if (result.ok()) return std::move(*result);
    world_.Complain(result.error().ToString());
    return T{};
  }
  // The same for what may fail.
  template <class T>
  Result<T> Try(Task<T> task) {
    task.Start();
    world_.Drive([&] { return task.done(); });
    if (!task.done())
      return Error(ErrorCode::kUnavailable, "the operation waits for something that never comes");
    return task.TakeResult();
  }
  // Steps the world until the task has ended or this client is dead. True: it has ended.
  template <class T>
  bool RunOrDie(Task<T> task) {
    task.Start();
    world_.Drive([&] { return task.done() || crashed(); });
    return task.done() && !crashed();
  }
  // The same, and it dies at the n-th verb. False: there are no so many.
  template <class T>
  bool RunAndDieAt(uint64_t nth, fabric::sim::FaultKind kind, Task<T> task) {
    const uint64_t first = world_.fabric.verbs_posted();
    world_.Arm(nth, kind);
    RunOrDie(std::move(task));
    world_.Disarm();
    return crashed() || world_.fabric.verbs_posted() > first + nth;  // not every verb can be cut in two
  }

  Task<std::string> Get(std::string key) {
    fabric::Op op(*client_, fabric::OpKind::kSearch);
    std::string value;
    const bool found = co_await index().Get(op, key, value);
    co_return found ? value : std::string("absent");
  }
  Task<std::string> Last(KeyRange range) {
    fabric::Op op(*client_, fabric::OpKind::kScan);
    Record record;
    const bool found = co_await index().Last(op, range, record);
    co_return found ? record.key : std::string("absent");
  }
  // One page of a cursor. An empty page: that was all.
  Task<std::vector<Record>> Page(Cursor& cursor) {
    fabric::Op op(*client_, fabric::OpKind::kScan);
    std::vector<Record> page;
    co_await index().Next(op, cursor, page);
    co_return page;
  }
  Task<std::multimap<std::string, std::string>> List() {
    std::multimap<std::string, std::string> all;
    Cursor cursor;
    while (true) {
      const std::vector<Record> page = co_await Page(cursor);
      if (page.empty()) break;
      for (const Record& record : page) all.emplace(record.key, record.value);
    }
    co_return all;
  }

  // A sign of life that publishes nothing new, and learns nothing.
  void Beat() {
    if (crashed() || left_ || (beat_.has_value() && !beat_->done())) return;
    beat_.emplace(SendBeat());
    beat_->Start();
  }
  Task<Done> Pause(Nanos duration) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await op.Pause(duration);
    co_return Done{};
  }
  // Everything that is reachable; nothing else of the table is used afterwards.
  Task<Done> Walk(pool::Reached& reached) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await session_->tables().Walk(op, reached);
    co_return Done{};
  }
  // The others that are registered; where there are most of them.
  Task<uint32_t> Others() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    uint32_t others = 0;
    for (size_t node = 0; node < pool().nodes(); ++node) {
      const pool::RegistryView view =
          co_await pool().member(static_cast<fabric::NodeId>(node)).LookAround(op);
      others = std::max(others, view.others);
    }
    co_return others;
  }
  Task<Done> Fsck(const pool::Reached& reached) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    for (size_t node = 0; node < world_.geometries.size(); ++node) {
      pool::FsckOptions options;
      options.no_client_runs = true;
      const pool::FsckReport report = co_await pool::Fsck(op, static_cast<fabric::NodeId>(node),
                                                          world_.geometries[node], reached, options);
      const uint64_t lost =
          report.bytes.held + report.bytes.abandoned + report.bytes.leaked + report.bytes.damaged;
      if (!report.ok() || lost != 0) {
        world_.Complain(fmt::format("fsck: {} bytes are neither free nor reachable; {}", lost,
                                    report.findings.empty() ? "no findings" : report.findings[0].what));
      }
      reachable_ += report.counts.blocks_reachable;
    }
    co_return Done{};
  }
  uint64_t reachable() const { return reachable_; }  // blocks, as of the last Fsck

  // The last client of all: verifies the table, waits until no dead client has a slot, leaves, and accounts
  // for every byte.
  void Audit() {
    Now(Verify());
    for (int round = 0; round < 200; ++round) {
      Now(Maintain());
      if (Now(Others()) == 0) break;
      Now(Pause(std::chrono::milliseconds(2)));
    }
    pool::Reached reached;
    Now(Walk(reached));
    Now(Leave());
    Now(Fsck(reached));
  }

 private:
  Task<Done> SendBeat() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    for (size_t i = 0; i < pool().nodes(); ++i) {
      const auto node = static_cast<fabric::NodeId>(i);
      co_await pool().member(node).StandingOf(op, pool().member(node).self());  // a client that asks beats
    }
    co_return Done{};
  }

  TableWorld& world_;
  std::optional<Task<Done>> beat_;
  uint64_t reachable_ = 0;
};

inline void TableWorld::BeatAll() {
  for (TableMember* member : members) member->Beat();
}

// Every client syncs a few times: what was retired before is free afterwards.
inline void LetMemoryGo(TableWorld& world) {
  for (int round = 0; round < 4; ++round) {
    for (TableMember* member : world.members) {
      if (!member->crashed()) member->Now(member->Maintain());
    }
  }
}

// Plays a scenario again and again, with a client that dies at its first verb, at its second, ..., in every
// way. `scenario(kind, verb, more)` says in `more` whether there were so many verbs, and returns what went
// wrong, or nothing.
template <class Scenario>
std::string AtEveryVerb(Scenario scenario) {
  using fabric::sim::FaultKind;
  for (const FaultKind kind : {FaultKind::kCrashBefore, FaultKind::kCrashMid, FaultKind::kCrashAfter}) {
    bool more = true;
    for (uint64_t verb = 0; more; ++verb) {
      const std::string problem = scenario(kind, verb, more);
      if (!problem.empty()) return fmt::format("{} at verb {}: {}", Name(kind), verb, problem);
      if (verb > 300) return "there is no end to it";
    }
  }
  return "";
}

}  // namespace farside::index
