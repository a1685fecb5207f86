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
#include "store/registration.h"

namespace farside::index {

struct WorldOptions {
  uint64_t seed = 1;
  uint64_t region_bytes = 4 << 20;
  size_t nodes = 1;
  fabric::sim::Chaos chaos = fabric::sim::Chaos::Calm();
};

class TableMember;

class TableWorld {
 public:
  explicit TableWorld(const WorldOptions& options = {})
      : fabric({.seed = options.seed,
                .region_bytes = std::vector<uint64_t>(options.nodes, options.region_bytes),
                .chaos = options.chaos}) {
    for (size_t node = 0; node < options.nodes; ++node) {
      geometries.push_back(*pool::FormatVolatile(fabric.memory(static_cast<fabric::NodeId>(node)),
                                                 {.chunk_bytes = 4096}, {1, node}));
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

class TableMember {
 public:
  TableMember(TableWorld& world, std::string engine, MakeEngine make_engine, OptionMap options)
      : world_(world), engine_(std::move(engine)), make_engine_(make_engine), options_(std::move(options)) {
    client_ = std::move(*world_.fabric.Connect());
    Now(Join());
    world_.members.push_back(this);
  }
  // Tasks first, then what they used.
  ~TableMember() {
    std::erase(world_.members, this);
    beat_.reset();
    table_.reset();
    session_.reset();
  }
  TableMember(const TableMember&) = delete;
  TableMember& operator=(const TableMember&) = delete;

  Index& index() { return *table_->index; }
  const std::vector<fabric::FarAddr>& roots() const { return table_->info.roots; }
  pool::PoolClient& pool() { return session_->pool(); }
  fabric::Client& client() { return *client_; }
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

  Task<PutOutcome> Put(std::string key, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kInsert);
    const PutOutcome outcome = co_await index().Put(op, key, value);
    co_return outcome;
  }
  Task<bool> Insert(std::string key, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kInsert);
    const bool inserted = co_await index().Insert(op, key, value);
    co_return inserted;
  }
  Task<bool> Update(std::string key, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kUpdate);
    const bool updated = co_await index().Update(op, key, value);
    co_return updated;
  }
  Task<bool> Delete(std::string key) {
    fabric::Op op(*client_, fabric::OpKind::kDelete);
    const bool deleted = co_await index().Delete(op, key);
    co_return deleted;
  }
  Task<std::string> Get(std::string key) {
    fabric::Op op(*client_, fabric::OpKind::kSearch);
    std::string value;
    const bool found = co_await index().Get(op, key, value);
    co_return found ? value : std::string("absent");
  }
  Task<std::vector<Record>> Scan(KeyRange range, size_t limit) {
    fabric::Op op(*client_, fabric::OpKind::kScan);
    std::vector<Record> page;
    co_await index().Scan(op, range, limit, page);
    co_return page;
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
  Task<TableStats> Stats() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    TableStats stats = co_await index().Stats(op);
    co_return stats;
  }
  Task<Done> Verify() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await index().Verify(op);
    co_return Done{};
  }
  Task<Done> Drop() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await session_->tables().Drop(op, "t");
    co_return Done{};
  }

  // A sign of life that publishes nothing new, and learns nothing.
  void Beat() {
    if (crashed() || left_ || (beat_.has_value() && !beat_->done())) return;
    beat_.emplace(SendBeat());
    beat_->Start();
  }
  Task<Done> Maintain() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await pool().Maintain(op);
    co_return Done{};
  }
  Task<Done> Pause(Nanos duration) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await op.Pause(duration);
    co_return Done{};
  }
  Task<Done> Leave() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    table_.reset();
    left_ = true;
    co_await session_->Leave(op);
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
  Task<Done> Join() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    const auto find = [make = make_engine_](std::string_view, const OptionMap& options) {
      return make(options);
    };
    pool::ClientOptions options;
    options.lease.lease = std::chrono::milliseconds(10);
    session_ = co_await store::Registration::Join(op, *client_, find, options);
    table_.emplace(co_await session_->tables().CreateOrOpen(op, "t", engine_, options_));
    co_return Done{};
  }
  Task<Done> SendBeat() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    for (size_t i = 0; i < pool().nodes(); ++i) {
      const auto node = static_cast<fabric::NodeId>(i);
      co_await pool().member(node).StandingOf(op, pool().member(node).self());  // a client that asks beats
    }
    co_return Done{};
  }

  TableWorld& world_;
  const std::string engine_;
  const MakeEngine make_engine_;
  const OptionMap options_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Registration> session_;
  std::optional<OpenTable> table_;
  std::optional<Task<Done>> beat_;
  bool left_ = false;
  uint64_t reachable_ = 0;
};

inline void TableWorld::BeatAll() {
  for (TableMember* member : members) member->Beat();
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
