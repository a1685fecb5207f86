// A simulated pool, and clients that have one shard table open, moved by hand: who syncs when, who knows of which resize,
// who dies where.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "fabric/op.h"
#include "fabric/sim/sim.h"
#include "index/shard/shard.h"
#include "pool/fsck.h"
#include "pool/superblock.h"
#include "store/session.h"

namespace farside::index::shard {

inline KeyHash HashOf(std::string_view key) { return KeyHash(Hash64(AsBytes(key))); }

// The n-th of the keys "k0", "k1" ... for whose hash `fits` holds.
inline std::string KeyFor(const std::function<bool(const KeyHash&)>& fits, int nth = 0) {
  for (int i = 0;; ++i) {
    std::string key = fmt::format("k{}", i);
    if (fits(HashOf(key)) && nth-- == 0) return key;
  }
}

// The n-th key that a split of the first unit to version 2 leaves there, or moves.
inline std::string KeyThat(bool moves, int nth) {
  return KeyFor([=](const KeyHash& hash) { return ((hash.hash() & 1) != 0) == moves; }, nth);
}

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

  StateWord state() const { return StateWord(LoadU64(memory().data() + roots[0].offset)); }
  std::span<std::byte> memory() const {
    return const_cast<fabric::sim::SimFabric&>(fabric).memory(fabric::NodeId{0});
  }
  // Somebody dies at the n-th verb from here on.
  void Arm(uint64_t nth, fabric::sim::FaultKind kind) {
    fabric.set_fault({fabric.verbs_posted() + nth, kind});
    armed_ = true;
  }
  void Disarm() {
    fabric.set_fault({~uint64_t{0}, fabric::sim::FaultKind::kCrashBefore});
    armed_ = false;
  }
  // Steps until it is over, or nothing happens any more. Everybody gives signs of life meanwhile, but for those that could be
  // hit by a fault that is meant for somebody else.
  template <class Over>
  void Drive(Over over) {
    while (!over()) {
      const bool quiet = armed_ && !fabric.fault_fired();
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
  std::vector<fabric::FarAddr> roots;
  std::string problem;
  std::vector<Member*> members;

 private:
  void BeatAll();

  Nanos last_beat_{0};
  bool armed_ = false;
};

class Member {
 public:
  Member(World& world, OptionMap options) : world_(world), options_(std::move(options)) {
    client_ = std::move(*world_.fabric.Connect());
    Now(Join());
    world_.members.push_back(this);
  }
  // Tasks first, then what they used.
  ~Member() {
    std::erase(world_.members, this);
    beat_.reset();
    table_.reset();
    session_.reset();
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Index& index() { return *table_->index; }
  pool::PoolClient& pool() { return session_->pool(); }
  fabric::Client& client() { return *client_; }
  bool crashed() const { return static_cast<const fabric::sim::SimClient&>(*client_).crashed(); }

  // Runs a task to its end; what fails is a problem of the scene. Steps the whole world.
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

  // Memory that is never given back.
  Task<Done> Allocate(uint64_t bytes) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await pool().allocator(fabric::NodeId{0}).Allocate(op, bytes);
    co_return Done{};
  }

  // A sign of life that publishes nothing new, and learns nothing.
  void Beat() {
    if (crashed() || left_ || (beat_.has_value() && !beat_->done())) return;
    beat_.emplace(SendBeat());
    beat_->Start();
  }
  // Publishes and reads the root's line, and nothing else: what waits for a grace goes on waiting.
  Task<Done> Sync() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await pool().Sync(op, false);
    co_return Done{};
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
  Task<Done> WalkTable(pool::Reach& reach) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    const pool::PoolClient::Pin pin = pool().Begin();
    co_await index().Walk(op, reach);
    co_return Done{};
  }
  // The others that are registered.
  Task<uint32_t> Others() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    uint32_t others = 0;
    for (size_t node = 0; node < pool().nodes(); ++node) {
      const pool::RegistryView view =
          co_await pool().member(static_cast<fabric::NodeId>(node)).LookAround(op);
      others += view.others;
    }
    co_return others;
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
      reachable_ += report.counts.blocks_reachable;
    }
    co_return Done{};
  }
  uint64_t reachable() const { return reachable_; }  // blocks, as of the last Fsck

 private:
  Task<Done> Join() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    const auto find = [](std::string_view, const OptionMap& options) { return MakeShardEngine(options); };
    pool::ClientOptions options;
    options.lease.lease = std::chrono::milliseconds(10);
    session_ = co_await store::Session::Join(op, *client_, find, options);
    table_.emplace(co_await session_->tables().CreateOrOpen(op, "t", "shard", options_));
    world_.roots = table_->info.roots;
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
  uint64_t reachable_ = 0;
};

inline void World::BeatAll() {
  for (Member* member : members) member->Beat();
}

// Whoever wants the table to grow announces that, or makes it count, on the way.
inline Task<Done> LookThrice(Member& member) {
  for (int round = 0; round < 3; ++round) {
    co_await member.Sync();
    co_await member.Get("looks");
  }
  co_return Done{};
}

// A table that never grows by itself but for one client, who wants it to grow whenever it looks.
class Stage {
 public:
  // A record of the grower's, without which there would be no reason to grow.
  static constexpr char kSeed[] = "seed";

  explicit Stage(OptionMap shape, const WorldOptions& options = {},
                 const OptionMap& of_grower = {{"max_load", "0.000001"}})
      : world(options), shape_(std::move(shape)) {
    grower_ = &EnterWith(of_grower);
    grower_->Now(grower_->Put(kSeed, "grows"));
  }
  ~Stage() { members_.clear(); }

  Member& Enter(const std::string& max_load = "0.95") { return EnterWith({{"max_load", max_load}}); }
  Member& EnterWith(const OptionMap& own) {
    OptionMap options = shape_;
    options["burst"] = "0";  // one version by a resize
    for (const auto& [key, value] : own) options[key] = value;
    members_.push_back(std::make_unique<Member>(world, std::move(options)));
    return *members_.back();
  }
  // It is gone, as far as this process goes. If it did not die before, it does now.
  void Kill(Member& member) {
    if (!member.crashed()) world.fabric.Crash(member.client().id());
    std::erase_if(members_, [&](const auto& known) { return known.get() == &member; });
  }

  // The next version is announced. Those who `listen` have read that; the others know nothing of it.
  void Announce(const std::vector<Member*>& listen) {
    const uint32_t version = world.state().version();
    for (int round = 0; round < kMostRounds && world.state().phase() != Phase::kAnnounced; ++round) {
      grower_->Now(grower_->Sync());
      grower_->Now(grower_->Get("looks"));
      PauseAfter(round);
    }
    if (world.state().phase() != Phase::kAnnounced || world.state().version() != version)
      world.Complain("no resize was announced");
    for (Member* member : listen) Learn(*member);
  }
  // What was announced counts. Those who are here have published that they know of the announcement, and know no more.
  void Activate() {
    const uint32_t version = world.state().version();
    const uint32_t announced = version + world.state().steps();
    for (int round = 0; round < kMostRounds && world.state().version() == version; ++round) {
      PauseAfter(round);
      for (const auto& member : members_) {
        if (member.get() != grower_) member->Now(member->Sync());
      }
      grower_->Now(grower_->Maintain());
      // The grower would announce the next one in the same breath if it synced before it looks.
      grower_->Now(grower_->Get("looks"));
    }
    if (version == announced || world.state().version() != announced)
      world.Complain("the resize does not become active");
  }
  // It may make count what was announced, as soon as it looks again.
  void WaitForGraceOf(Member& waiting) {
    for (int round = 0; round < 6; ++round) {
      for (const auto& member : members_) {
        if (member.get() != &waiting) member->Now(member->Sync());
      }
      waiting.Now(waiting.Maintain());
    }
  }
  // The same of the client that makes the table grow.
  void WaitForGrace() { WaitForGraceOf(*grower_); }
  void SyncGrower() { grower_->Now(grower_->Sync()); }
  void LookAfterGrace() { grower_->Now(grower_->Get("looks")); }
  void Learn(Member& member) {
    member.Now(member.Sync());
    member.Now(member.Get("looks"));
  }
  void LearnAll() {
    for (const auto& member : members_) {
      if (member.get() != grower_) Learn(*member);
    }
  }
  void GrowTo(uint32_t version) {
    while (world.problem.empty() && world.state().version() < version) {
      Announce({});
      LearnAll();
      Activate();
      LearnAll();
    }
  }

  // What is in memory, of a table of one node. The shape is that of the options.
  uint64_t Word(uint64_t offset) const { return LoadU64(world.memory().data() + offset); }
  Shape shape() const { return Options::Parse(shape_)->shape; }
  uint64_t SegmentBase(size_t segment) const {
    return Word(world.roots[0].offset + kDirectoryOffset + segment * 8);
  }
  // Of the first line of the unit's bucket.
  uint32_t VersionOf(uint64_t unit) const {
    const size_t segment = shape().SegmentOf(unit);
    const uint64_t at = SegmentBase(segment) + (unit - shape().FirstUnit(segment)) * shape().unit_bytes();
    Line line;
    for (size_t i = 0; i < kSlotsPerLine; ++i) line.entries[i] = Entry(Word(at + i * sizeof(Entry)));
    return line.version();
  }
  uint64_t LockAt(uint64_t unit) const {
    const size_t segment = shape().SegmentOf(unit);
    return SegmentBase(segment) + shape().SegmentUnits(segment) * shape().unit_bytes() +
           (unit - shape().FirstUnit(segment)) % shape().SegmentLocks(segment) * 8;
  }

  // Everybody leaves; the last one looks whether the dead are buried, and the table and every byte are in order.
  std::string End() {
    Member& last = Enter();
    last.Now(last.Verify());
    std::vector<Task<Done>> leaving;
    for (const auto& member : members_) {
      if (member.get() != &last) leaving.push_back(member->Leave());
    }
    for (Task<Done>& task : leaving) task.Start();
    bool alone = false;
    for (int round = 0; round < 1000 && !alone && world.problem.empty(); ++round) {
      last.Now(last.Maintain());
      last.Now(last.Pause(std::chrono::milliseconds(1)));
      alone = last.Now(last.Others()) == 0;
    }
    const auto left = [](const Task<Done>& task) { return task.done(); };
    if (alone) world.Drive([&] { return std::all_of(leaving.begin(), leaving.end(), left); });
    for (Task<Done>& task : leaving) {
      if (!task.done()) {
        world.Complain("somebody cannot leave");
        continue;
      }
      const Result<Done> end = task.TakeResult();
      if (!end.ok()) world.Complain(end.error().ToString());
    }
    if (!alone) world.Complain("the dead were never buried");
    leaving.clear();
    pool::Reached reached;
    last.Now(last.Verify());
    last.Now(last.Walk(reached));
    last.Now(last.Leave());
    last.Now(last.Fsck(reached));
    return world.problem;
  }

  World world;

 private:
  static constexpr int kMostRounds = 60;
  // If it takes long, then because somebody has died; it takes a lease to be sure of that.
  void PauseAfter(int round) {
    if (round >= 10) grower_->Now(grower_->Pause(std::chrono::milliseconds(1)));
  }

  const OptionMap shape_;
  std::vector<std::unique_ptr<Member>> members_;
  Member* grower_ = nullptr;
};

}  // namespace farside::index::shard
