// A simulated pool, and clients that have one shard table open, moved by hand: which of them syncs when,
// knows of which resize, and dies where.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "fabric/op.h"
#include "index/shard/shard.h"
#include "tests/support/table_world.h"

namespace farside::index::shard {

inline KeyHash HashOf(std::string_view key) { return KeyHash(Hash64(AsBytes(key))); }

// The n-th of the keys "k0", "k1" ... for whose hash `fits` holds.
std::string KeyFor(const std::function<bool(const KeyHash&)>& fits, int nth = 0);

// The n-th key that a split of the first unit to version 2 leaves there, or moves.
inline std::string KeyThat(bool moves, int nth) {
  return KeyFor([=](const KeyHash& hash) { return ((hash.hash() & 1) != 0) == moves; }, nth);
}

class World : public TableWorld {
 public:
  using TableWorld::TableWorld;

  StateWord state() const { return StateWord(LoadU64(memory().data() + roots[0].offset)); }

  std::vector<fabric::FarAddr> roots;
};

class Member : public TableMember {
 public:
  Member(World& world, OptionMap options) : TableMember(world, "shard", MakeShardEngine, std::move(options)) {
    if (world.problem.empty()) world.roots = roots();
  }

  // Memory that is never given back.
  Task<Done> Allocate(uint64_t bytes) {
    fabric::Op op(client(), fabric::OpKind::kMaintenance);
    co_await pool().allocator(fabric::NodeId{0}).Allocate(op, bytes);
    co_return Done{};
  }
  // Publishes and reads the root's line, and nothing else: what waits for a grace goes on waiting.
  Task<Done> Sync(bool raise = false) {
    fabric::Op op(client(), fabric::OpKind::kMaintenance);
    co_await pool().Sync(op, raise);
    co_return Done{};
  }
  Task<Done> WalkTable(pool::Reach& reach) {
    fabric::Op op(client(), fabric::OpKind::kMaintenance);
    const pool::PoolClient::Pin pin = pool().Begin();
    co_await index().Walk(op, reach);
    co_return Done{};
  }
};

// A client that wants the table to grow announces that, or makes it count, on the way.
Task<Done> LookThrice(Member& member);

// A table that never grows by itself except for one client, which wants it to grow whenever it looks.
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

  // The next version is announced. Clients that `listen` have read that; the others know nothing of it.
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
  // What was announced counts. Clients that are here have published that they know of the announcement, and
  // know no more.
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

  // Every client leaves; the last one looks whether the slots of dead clients are released, and the table and
  // every byte are in order.
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
        world.Complain("a client cannot leave");
        continue;
      }
      const Result<Done> end = task.TakeResult();
      if (!end.ok()) world.Complain(end.error().ToString());
    }
    if (!alone) world.Complain("the slots of dead clients were never released");
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
  // If it takes long, then because a client has died; it takes a lease to be sure of that.
  void PauseAfter(int round) {
    if (round >= 10) grower_->Now(grower_->Pause(std::chrono::milliseconds(1)));
  }

  const OptionMap shape_;
  std::vector<std::unique_ptr<Member>> members_;
  Member* grower_ = nullptr;
};

}  // namespace farside::index::shard
