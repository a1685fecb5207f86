// A simulated pool, and clients that have one chime table open, moved by hand.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabric/op.h"
#include "fabric/sim/sim.h"
#include "index/chime/chime.h"
#include "pool/fsck.h"
#include "pool/superblock.h"
#include "store/session.h"

namespace farside::index::chime {

struct WorldOptions {
  uint64_t seed = 1;
  uint64_t region_bytes = 4 << 20;
  size_t nodes = 1;
  fabric::sim::Chaos chaos = fabric::sim::Chaos::Calm();
};

class Member;

class World {
 public:
  explicit World(const WorldOptions& options = {})
      : fabric({.seed = options.seed,
                .region_bytes = std::vector<uint64_t>(options.nodes, options.region_bytes),
                .chaos = options.chaos}) {
    for (size_t node = 0; node < options.nodes; ++node) {
      geometries.push_back(*pool::FormatVolatile(fabric.memory(static_cast<fabric::NodeId>(node)),
                                                 {.chunk_bytes = 4096}, {1, node}));
    }
  }
  // Steps until it is over, or nothing happens any more. Members that live give signs of life meanwhile.
  template <class Over>
  void Drive(Over over) {
    while (!over()) {
      if (beats && fabric.Now() - last_beat_ >= std::chrono::milliseconds(1)) {
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
  std::vector<Member*> members;
  bool beats = true;  // switched off while a verb of somebody is to be hit, and nobody else's

 private:
  void BeatAll();

  Nanos last_beat_{0};
};

class Member {
 public:
  Member(World& world, OptionMap options) : world_(world), options_(std::move(options)) {
    client_ = std::move(*world_.fabric.Connect());
    Now(Join());
    world_.members.push_back(this);
  }
  ~Member() {
    std::erase(world_.members, this);
    beat_.reset();
    table_.reset();
    session_.reset();
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Index& index() { return *table_->index; }
  const std::vector<fabric::FarAddr>& roots() const { return table_->info.roots; }
  pool::PoolClient& pool() { return session_->pool(); }
  fabric::Client& client() { return *client_; }
  bool crashed() const { return static_cast<const fabric::sim::SimClient&>(*client_).crashed(); }
  const fabric::OpTally& tally(fabric::OpKind kind,
                               fabric::OpOutcome outcome = fabric::OpOutcome::kDone) const {
    return client_->counters().at(kind, outcome);
  }

  // Runs a task to its end; what fails is a problem of the scene. Steps the whole world.
  template <class T>
  T Now(Task<T> task) {
    Result<T> result = Try(std::move(task));
    if (result.ok()) return std::move(*result);
    world_.Complain(result.error().ToString());
    return T{};
  }
  template <class T>
  Result<T> Try(Task<T> task) {
    task.Start();
    world_.Drive([&] { return task.done(); });
    if (!task.done())
      return Error(ErrorCode::kUnavailable, "the operation waits for something that never comes");
    return task.TakeResult();
  }
  // Steps the world until the task has ended or this client is dead.
  template <class T>
  void RunOrDie(Task<T> task) {
    task.Start();
    world_.Drive([&] { return task.done() || crashed(); });
  }

  Task<PutOutcome> Put(std::string key, std::string value) {
    fabric::Op op(*client_, fabric::OpKind::kInsert);
    const PutOutcome outcome = co_await index().Put(op, key, value);
    co_return outcome;
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
  Task<std::multimap<std::string, std::string>> List() {
    fabric::Op op(*client_, fabric::OpKind::kScan);
    std::multimap<std::string, std::string> all;
    Cursor cursor;
    while (true) {
      std::vector<Record> page;
      co_await index().Next(op, cursor, page);
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
  Task<Done> Maintain() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await pool().Maintain(op);
    co_return Done{};
  }
  Task<Done> Drop() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await session_->tables().Drop(op, "t");
    co_return Done{};
  }
  Task<Done> Pause(Nanos duration) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await op.Pause(duration);
    co_return Done{};
  }
  Task<Done> Walk(pool::Reached& reached) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await session_->tables().Walk(op, reached);
    co_return Done{};
  }
  Task<uint32_t> Others() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    const pool::RegistryView view = co_await pool().member(fabric::NodeId{0}).LookAround(op);
    co_return view.others;
  }
  Task<Done> Leave() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    table_.reset();
    left_ = true;
    co_await session_->Leave(op);
    co_return Done{};
  }
  Task<Done> Fsck(const pool::Reached& reached) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    for (size_t node = 0; node < world_.geometries.size(); ++node) {
      pool::FsckOptions options;
      options.nobody_runs = true;
      const pool::FsckReport report = co_await pool::Fsck(op, static_cast<fabric::NodeId>(node),
                                                          world_.geometries[node], reached, options);
      const uint64_t lost =
          report.bytes.held + report.bytes.abandoned + report.bytes.leaked + report.bytes.damaged;
      if (!report.ok() || lost != 0) {
        world_.Complain(fmt::format("fsck: {} bytes are neither free nor reachable; {}", lost,
                                    report.findings.empty() ? "no findings" : report.findings[0].what));
      }
    }
    co_return Done{};
  }
  void Beat() {
    if (crashed() || left_ || (beat_.has_value() && !beat_->done())) return;
    beat_.emplace(SendBeat());
    beat_->Start();
  }

  // The last one of all: verifies the table, waits until the dead are buried, leaves, and accounts for every byte.
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
    const auto find = [](std::string_view, const OptionMap& options) { return MakeChimeEngine(options); };
    pool::ClientOptions options;
    options.lease.lease = std::chrono::milliseconds(10);
    session_ = co_await store::Session::Join(op, *client_, find, options);
    table_.emplace(co_await session_->tables().CreateOrOpen(op, "t", "chime", options_));
    co_return Done{};
  }
  Task<Done> SendBeat() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    for (size_t i = 0; i < pool().nodes(); ++i) {
      const auto node = static_cast<fabric::NodeId>(i);
      co_await pool().member(node).StandingOf(op, pool().member(node).self());  // whoever asks beats
    }
    co_return Done{};
  }

  World& world_;
  const OptionMap options_;
  std::unique_ptr<fabric::Client> client_;
  std::unique_ptr<store::Session> session_;
  std::optional<OpenTable> table_;
  std::optional<Task<Done>> beat_;
  bool left_ = false;
};

inline void World::BeatAll() {
  for (Member* member : members) member->Beat();
}

// What Stats says under a name; -1 if it does not say anything.
inline double DetailOf(const TableStats& stats, std::string_view name) {
  for (const auto& [known, value] : stats.details) {
    if (known == name) return value;
  }
  return -1;
}

// ---- the tree as it stands in memory, on one node --------------------------------------------------------

inline std::byte* BytesOf(std::span<std::byte> memory, NodePtr node) {
  return memory.data() + LineBits::Get(node.word()) * pool::kLine;
}
// The nodes of a level, as those above name them, in no order.
inline std::vector<NodePtr> NodesOf(std::span<std::byte> memory, const Shape& shape, uint64_t root_block,
                                    uint32_t level) {
  std::vector<NodePtr> nodes = {NodePtr(LoadU64(memory.data() + root_block))};
  while (nodes.front().level() > level) {
    std::vector<NodePtr> below;
    for (const NodePtr node : nodes) {
      for (size_t slot = 0; slot < shape.fanout; ++slot) {
        const RawPivot pivot = LoadPivot(shape, BytesOf(memory, node) + shape.PivotOffset(slot));
        if (!pivot.child.null()) below.push_back(pivot.child);
      }
    }
    nodes = std::move(below);
  }
  return nodes;
}

// ---- keys for scenes -----------------------------------------------------------------------------------

// Keys of 8 bytes that fit into one leaf, and one more for which others have to move, or for which the leaf is split.
struct Crowd {
  std::vector<std::string> keys;
  std::string last;
};
inline std::string EightBytes(uint64_t i) { return fmt::format("k{:07}", i); }
// `moves`: how many entries have to move for the last key; 0: there is no room for it at all.
inline Crowd CrowdFor(const Shape& shape, size_t moves, size_t fewest = 2) {
  for (uint64_t start = 0;; start += 100) {
    Crowd crowd;
    Leaf leaf;
    for (uint64_t i = start; i < start + 100; ++i) {
      const std::string key = EightBytes(i);
      const uint64_t tag = TagOf(Hash64(key));
      Entry entry{.used = true, .key = PrefixOf(key), .value = i};
      if (!shape.inline_keys) entry.value = BlockRef::To(0, (i + 1) * 64, 64, tag).word();
      const auto path = FindRoom(shape, leaf, shape.HomeOf(tag));
      const size_t needed = path.has_value() ? path->size() - 1 : 0;
      const bool full = !path.has_value();
      if (crowd.keys.size() >= fewest && ((moves == 0 && full) || (moves > 0 && needed == moves))) {
        crowd.last = key;
        return crowd;
      }
      if (full) break;
      for (size_t step = path->size() - 1; step > 0; --step)
        leaf.Set(shape, (*path)[step], leaf.Get(shape, (*path)[step - 1]));
      leaf.Set(shape, (*path)[0], entry);
      crowd.keys.push_back(key);
    }
  }
}

}  // namespace farside::index::chime
