// A small world for the allocator: members that replace, delete and read blocks through a shared array of
// slots, in the simulated cluster, where some of them may die or fall asleep. In the end nothing may be
// left.
//
// What is watched:
//   - A block that is handed out overlaps no block that a slot names, and none that another member has not
//     published yet.
//   - A reader that followed a slot finds the block that was published there, whole, however long it waits.
//   - When every client is gone, every chunk is free again.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "fabric/op.h"
#include "fabric/run.h"
#include "fabric/sim/sim.h"
#include "pool/members/membership.h"
#include "pool/memory/allocator.h"
#include "pool/memory/sweep.h"

namespace farside::pool {

struct WorldShape {
  int members = 3;
  int workers = 1;      // per member, at once
  int operations = 12;  // per worker
  uint64_t slots = 12;
  uint64_t chunks = 48;
  uint64_t chunk_bytes = 4096;
  uint64_t largest_bytes = 3 * 4096;
  int operations_per_sync = 3;
  int lives = 1;                          // how often a member comes back after it has left or died
  std::optional<uint64_t> first_dies_at;  // the event at which the first member crashes, for certain
  Nanos lease = std::chrono::milliseconds(20);

  // Worlds of all kinds: few members or many, with enough memory or not, that meet often or seldom.
  static WorldShape ForSeed(uint64_t seed) {
    WorldShape shape;
    shape.members = 2 + static_cast<int>(seed % 3);
    shape.workers = 1 + static_cast<int>(seed / 3 % 2);
    shape.operations = seed % 7 == 0 ? 60 : 15;
    shape.chunks = seed % 5 == 0 ? 16 : 64;
    shape.slots = seed % 4 == 0 ? 3 : 16;
    shape.largest_bytes = seed % 3 == 0 ? 512 : 3 * 4096;
    shape.operations_per_sync = 1 + static_cast<int>(seed % 4);
    shape.lives = 1 + static_cast<int>(seed / 7 % 3);
    return shape;
  }
};

struct WorldReport {
  bool ok() const { return problem.empty(); }

  std::string problem;  // empty, or what is wrong in a line
  uint64_t verbs = 0;   // without the auditor's
  bool fault_fired = false;
  uint64_t allocations = 0;
  uint64_t out_of_memory = 0;
  uint64_t reads = 0;
  uint64_t dead = 0;
  AllocatorStats stats;  // of all who ended well, added up
};

// A word of the array of slots.
class SlotWord {
 public:
  using Line = Field<0, 28>;    // of the block
  using Lines = Field<28, 16>;  // its size
  using Tag = Field<44, 20>;    // of what was written into it

  SlotWord() = default;
  explicit SlotWord(uint64_t word) : word_(word) {}
  SlotWord(fabric::FarAddr block, uint64_t bytes, uint64_t id)
      : word_(Line::Set(0, block.offset / kLine) | Lines::Set(0, bytes / kLine) | Tag::Set(0, TagOf(id))) {}

  uint64_t word() const { return word_; }
  bool empty() const { return word_ == 0; }
  fabric::FarAddr block() const { return fabric::FarAddr(fabric::NodeId{0}, Line::Get(word_) * kLine); }
  uint64_t bytes() const { return Lines::Get(word_) * kLine; }
  uint64_t tag() const { return Tag::Get(word_); }
  static uint64_t TagOf(uint64_t id) { return (id * 0x9e3779b97f4a7c15) >> 44; }

 private:
  uint64_t word_ = 0;
};

class World {
 public:
  World(const WorldShape& world_shape, fabric::sim::SimOptions options)
      : shape(world_shape),
        geometry(GeometryOf(shape)),
        faults(options.chaos.has_faults() || options.fault.has_value() || shape.first_dies_at.has_value()),
        fabric(WithRegion(std::move(options), geometry)),
        carving(fabric::NodeId{0}, geometry) {}

  static Geometry GeometryOf(const WorldShape& shape) {
    Geometry geometry{.client_slots = 16, .table_slots = 4, .chunk_bytes = shape.chunk_bytes};
    geometry.region_bytes =
        geometry.chunk_table() + RoundUp(shape.chunks * 8, kPage) + shape.chunks * shape.chunk_bytes;
    return geometry;
  }

  // The slots stand where the catalog would be.
  fabric::FarAddr SlotAt(uint64_t slot) const {
    return fabric::FarAddr(fabric::NodeId{0}, geometry.catalog() + slot * 8);
  }
  uint64_t Peek(uint64_t offset) {
    uint64_t word = 0;
    std::memcpy(&word, fabric.memory(fabric::NodeId{0}).data() + offset, 8);
    return word;
  }
  void Poke(uint64_t offset, uint64_t word) {
    std::memcpy(fabric.memory(fabric::NodeId{0}).data() + offset, &word, 8);
  }

  void Complain(const std::string& what) {
    if (report.problem.empty()) report.problem = what;
  }

  // ---- who holds what
  void NoteAllocated(int member, Owner owner, fabric::FarAddr block, uint64_t bytes) {
    ++report.allocations;
    if (!IsLive(owner)) return;  // it was fenced in its sleep, and does not know
    const uint64_t end = block.offset + bytes;
    if (!carving.Locate(block, bytes).has_value())
      Complain(fmt::format("member {} got {:#x}, which is no block", member, block.offset));
    for (uint64_t slot = 0; slot < shape.slots; ++slot) {
      const SlotWord word(Peek(SlotAt(slot).offset));
      if (word.empty() || word.block().offset >= end || word.block().offset + word.bytes() <= block.offset)
        continue;
      Complain(
          fmt::format("member {} was handed out {:#x}, which slot {} names", member, block.offset, slot));
    }
    const auto after = unpublished.lower_bound(end);
    if (after != unpublished.begin() && std::prev(after)->second.end > block.offset &&
        IsLive(std::prev(after)->second.owner)) {
      Complain(fmt::format("member {} was handed out {:#x}, which member {} holds", member, block.offset,
                           std::prev(after)->second.member));
    }
    unpublished[block.offset] = {end, member, owner};
  }
  // A client that sleeps may not know yet that it was fenced.
  bool IsLive(Owner owner) {
    const ClientWord word(Peek(geometry.client_slot(owner.slot())));
    return word.state() == ClientState::kLive && word.generation() == owner.generation();
  }
  void NoteNotHeld(fabric::FarAddr block) { unpublished.erase(block.offset); }
  void NoteDead(int member) {
    std::erase_if(unpublished, [member](const auto& held) { return held.second.member == member; });
  }

  struct Held {
    uint64_t end = 0;
    int member = 0;
    Owner owner;
  };

  const WorldShape shape;
  const Geometry geometry;
  const bool faults;
  fabric::sim::SimFabric fabric;
  const Carving carving;
  std::map<uint64_t, Held> unpublished;  // by offset
  WorldReport report;

 private:
  static fabric::sim::SimOptions WithRegion(fabric::sim::SimOptions options, const Geometry& geometry) {
    options.region_bytes = {geometry.region_bytes};
    return options;
  }
};

// Drives a Membership and an Allocator the way a client of a pool does, with nothing else around them.
class Member {
 public:
  Member(World& world, int number, uint64_t seed) : world_(world), number_(number), random_(seed) {}

  bool running() const { return client_ != nullptr; }
  bool MayComeBack() { return ++lives_ < world_.shape.lives; }
  fabric::Client& client() { return *client_; }
  Allocator& allocator() { return *allocator_; }
  Membership& membership() { return *membership_; }

  void Connect() {
    client_ = std::move(*world_.fabric.Connect());
    membership_.emplace(*client_, fabric::NodeId{0}, world_.geometry,
                        LeaseOptions{.lease = world_.shape.lease});
    allocator_.emplace(*membership_);
    allocator_->set_ask_for_grace([this](fabric::Op& op) { return Maintain(op, true); });
  }
  void Start(bool audit) {
    Connect();
    task_.emplace(audit ? Audit() : Live());
    task_->Start();
  }

  // Looks at what has become of it: still running, dead, or done.
  void HandleProgress() {
    if (static_cast<fabric::sim::SimClient&>(*client_).crashed()) return Die();
    if (helper_failed_.has_value()) return Fail(*helper_failed_);
    if (!task_->done()) return;
    const Result<Done> end = task_->TakeResult();
    if (!end.ok()) return Fail(end.error());
    AddStats(allocator_->stats());
    Vanish();
  }
  void Fail(const Error& error) {
    const ErrorCode code = error.code();
    const bool broken =
        code == ErrorCode::kOutcomeUnknown || code == ErrorCode::kFenced || code == ErrorCode::kUnavailable;
    if (!broken || !world_.faults) world_.Complain(fmt::format("member {}: {}", number_, error.ToString()));
    Die();
  }
  void Die() {
    ++world_.report.dead;
    if (allocator_->stats().nonsense > 0) world_.Complain(fmt::format("member {} met nonsense", number_));
    Vanish();
  }
  // Tasks first, then what they use.
  void Vanish() {
    task_.reset();
    helpers_.clear();
    helper_failed_.reset();
    view_ = RegistryView();
    maintaining_ = quiesce_ = false;
    world_.NoteDead(number_);
    allocator_.reset();
    membership_.reset();
    client_.reset();
  }

  // ---- for scenarios: one thing at a time
  // Runs what `start` makes of an operation until it has ended.
  template <class Start>
  auto Try(Start start) {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    return fabric::Run(*client_, start(op));
  }
  // The same, for what must not fail.
  template <class Start>
  auto Now(Start start) {
    auto result = Try(start);
    using Value = typename decltype(result)::value_type;
    if (result.ok()) return *result;
    world_.Complain(fmt::format("member {}: {}", number_, result.error().ToString()));
    return Value{};
  }
  Task<Done> Wait(fabric::Op& op, Nanos duration) {
    co_await op.Pause(duration);
    co_return Done{};
  }
  const RegistryView& view() const { return view_; }

  // ---- operations
  class Pin {
   public:
    explicit Pin(Member& member) : member_(member), epoch_(member.membership_->known_epoch()) {
      ++member_.pins_[epoch_];
    }
    Pin(const Pin&) = delete;
    Pin& operator=(const Pin&) = delete;
    ~Pin() {
      if (--member_.pins_[epoch_] == 0) member_.pins_.erase(epoch_);
    }
    uint64_t epoch() const { return epoch_; }

   private:
    Member& member_;
    const uint64_t epoch_;
  };

  Task<Done> Replace(fabric::Op& op, uint64_t slot, uint64_t bytes) {
    const Pin pin(*this);
    const Result<fabric::FarAddr> block = co_await allocator_->Allocate(op, bytes).Outcome();
    if (!block.ok()) {
      if (block.error().code() != ErrorCode::kOutOfMemory) co_return block.error();
      ++world_.report.out_of_memory;
      co_return Done{};
    }
    world_.NoteAllocated(number_, membership_->self(), *block, bytes);
    const uint64_t id = (static_cast<uint64_t>(number_) << 32) + ++sequence_;
    const std::vector<uint64_t> content = Content(id, bytes);
    co_await op.InOrder(fabric::Write(*block, std::as_bytes(std::span(content))));
    const SlotWord old(co_await op.InOrder(fabric::Read<uint64_t>(world_.SlotAt(slot))));
    co_await MaybePause(op);
    const SlotWord mine(*block, bytes, id);
    const uint64_t found = co_await op.InOrder(fabric::Cas(world_.SlotAt(slot), old.word(), mine.word()));
    world_.NoteNotHeld(*block);
    if (found != old.word()) {
      allocator_->FreeUnpublished(*block, bytes);
    } else if (!old.empty()) {
      allocator_->Retire(old.block(), old.bytes(), pin.epoch());
    }
    co_return Done{};
  }

  Task<Done> Delete(fabric::Op& op, uint64_t slot) {
    const Pin pin(*this);
    const SlotWord old(co_await op.InOrder(fabric::Read<uint64_t>(world_.SlotAt(slot))));
    if (old.empty()) co_return Done{};
    const uint64_t found = co_await op.InOrder(fabric::Cas(world_.SlotAt(slot), old.word(), 0));
    if (found != old.word()) co_return Done{};
    co_await MaybePause(op);  // unlinked, but not retired yet
    allocator_->Retire(old.block(), old.bytes(), pin.epoch());
    co_return Done{};
  }

  Task<Done> ReadBlock(fabric::Op& op, uint64_t slot, Nanos longest_pause) {
    const Pin pin(*this);
    const SlotWord word(co_await op.InOrder(fabric::Read<uint64_t>(world_.SlotAt(slot))));
    if (word.empty()) co_return Done{};
    co_await MaybePause(op, longest_pause);
    std::vector<uint64_t> found(word.bytes() / 8);
    co_await op.InOrder(fabric::Read(word.block(), std::as_writable_bytes(std::span(found))));
    ++world_.report.reads;
    if (SlotWord::TagOf(found[0]) != word.tag() || found != Content(found[0], word.bytes())) {
      world_.Complain(fmt::format("member {} followed slot {} to {:#x} and found something else", number_,
                                  slot, word.block().offset));
    }
    co_return Done{};
  }

  Task<Done> SomeOperation(Nanos longest_pause) {
    fabric::Op op(*client_, fabric::OpKind::kUpdate);
    const uint64_t slot = random_.Below(world_.shape.slots);
    const uint64_t choice = random_.Below(8);
    if (choice < 5) {
      co_await Replace(op, slot, RoundUp(1 + random_.LogUniform(world_.shape.largest_bytes - 1), kLine));
    } else if (choice == 5) {
      co_await Delete(op, slot);
    } else {
      co_await ReadBlock(op, slot, longest_pause);
    }
    co_return Done{};
  }

  // ---- maintenance
  uint64_t OldestPin() const { return pins_.empty() ? membership_->known_epoch() : pins_.begin()->first; }

  Task<Done> Maintain(fabric::Op& op, bool raise) {
    if (maintaining_) co_return Done{};
    maintaining_ = true;
    const uint64_t epoch = OldestPin();
    const uint64_t settled = std::min(epoch, allocator_->OldestUnsettled());
    const uint64_t retired_before = allocator_->retired_so_far();
    co_await membership_->Sync(op, epoch, settled, raise);
    allocator_->Stamp(retired_before, membership_->known_epoch());
    view_ = co_await membership_->LookAround(op);
    co_await allocator_->Reclaim(op, view_.safe_epoch);
    maintaining_ = false;
    co_return Done{};
  }

  Task<Done> Repair(fabric::Op& op) {
    if (view_.fenced.empty() && !allocator_->SweepDue()) co_return Done{};
    const std::vector<Owner> fenced = view_.fenced;
    for (const Owner dead : fenced) co_await allocator_->Adopt(op, dead);
    if (allocator_->SweepDue()) co_await SweepAll(op);
    for (const Owner dead : fenced) {
      if (allocator_->MayReleaseSlot(dead)) co_await membership_->ReleaseSlot(op, dead);
    }
    co_return Done{};
  }

  Task<Done> SweepAll(fabric::Op& op) {
    quiesce_ = true;
    while (!pins_.empty()) co_await op.Pause(Nanos(1000));
    Sweep sweep(*allocator_);
    quiesce_ = false;
    {
      const Pin pin(*this);
      for (uint64_t slot = 0; slot < world_.shape.slots; ++slot) {
        const SlotWord word(co_await op.InOrder(fabric::Read<uint64_t>(world_.SlotAt(slot))));
        if (!word.empty()) sweep.Mark(word.block(), word.bytes());
        co_await MaybePause(op);
      }
    }
    co_await Maintain(op, true);
    sweep.WalkEnded(membership_->known_epoch());
    for (int round = 0; round < kMostRounds; ++round) {
      co_await Maintain(op, true);
      if (sweep.Ready(view_)) {
        co_await sweep.Finish(op);
        co_return Done{};
      }
      co_await op.Pause(world_.shape.lease / 8);
    }
    co_return Error(ErrorCode::kContended, "the others did not settle");
  }

  Task<Done> LeaveAll(fabric::Op& op) {
    const Pin pin(*this);
    co_await allocator_->LeaveAll(op);
    co_return Done{};
  }

  Task<Done> Leave(fabric::Op& op) {
    for (int round = 0; round < kMostRounds; ++round) {
      co_await Maintain(op, true);
      co_await Repair(op);
      co_await Maintain(op, true);  // it may hear of a death now; then it must not leave yet
      const Result<Done> left = co_await LeaveAll(op).Outcome();
      if (left.ok()) {
        co_await membership_->Leave(op);
        co_return Done{};
      }
      if (left.error().code() != ErrorCode::kContended) co_return left.error();
      co_await op.Pause(world_.shape.lease / 8);
    }
    co_return Error(ErrorCode::kContended, "cannot leave");
  }

 private:
  static constexpr int kMostRounds = 2000;
  static constexpr Nanos kPause = std::chrono::microseconds(200);

  Task<Done> Live() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await membership_->Join(op);
    for (int worker = 1; worker < world_.shape.workers; ++worker) {
      helpers_.push_back(Help());
      helpers_.back().Start();
    }
    for (int i = 0; i < world_.shape.operations; ++i) {
      co_await SomeOperation(kPause);
      if (i % world_.shape.operations_per_sync != 0) continue;
      co_await Maintain(op, true);
      co_await Repair(op);
    }
    for (Task<Done>& helper : helpers_) {
      while (!helper.done()) {
        co_await Maintain(op, true);
        co_await Repair(op);
        co_await op.Pause(world_.shape.lease / 8);
      }
    }
    co_await Leave(op);
    co_return Done{};
  }

  Task<Done> Help() {
    for (int i = 0; i < world_.shape.operations; ++i) {
      while (quiesce_) {
        fabric::Op op(*client_, fabric::OpKind::kMaintenance);
        co_await op.Pause(Nanos(1000));
      }
      // While another worker keeps the client alive, a reader may take its time.
      const Nanos longest_pause = random_.Chance(1, 8) ? world_.shape.lease * 3 : kPause;
      const Result<Done> end = co_await SomeOperation(longest_pause).Outcome();
      if (end.ok()) continue;
      helper_failed_ = end.error();
      break;
    }
    co_return Done{};
  }

  // Waits until every other client is gone, empties the slots, and leaves.
  Task<Done> Audit() {
    fabric::Op op(*client_, fabric::OpKind::kMaintenance);
    co_await membership_->Join(op);
    for (int round = 0; round < kMostRounds; ++round) {
      co_await Maintain(op, true);
      co_await Repair(op);
      if (view_.others == 0) break;
      co_await op.Pause(world_.shape.lease / 8);
    }
    for (uint64_t slot = 0; slot < world_.shape.slots; ++slot) {
      co_await ReadBlock(op, slot, kPause);
      co_await Delete(op, slot);
    }
    co_await Leave(op);
    co_return Done{};
  }

  Task<Done> MaybePause(fabric::Op& op, Nanos longest = kPause) {
    if (random_.Chance(1, 3))
      co_await op.Pause(Nanos(random_.LogUniform(static_cast<uint64_t>(longest.count()))));
    co_return Done{};
  }

  static std::vector<uint64_t> Content(uint64_t id, uint64_t bytes) {
    std::vector<uint64_t> words(bytes / 8);
    for (size_t i = 0; i < words.size(); ++i) words[i] = id + i * 0x0001000100010001;
    return words;
  }

  void AddStats(const AllocatorStats& stats) {
    AllocatorStats& total = world_.report.stats;
    total.chunks_claimed += stats.chunks_claimed;
    total.chunks_released += stats.chunks_released;
    total.blocks_given_back += stats.blocks_given_back;
    total.blocks_harvested += stats.blocks_harvested;
    total.blocks_swept += stats.blocks_swept;
    total.trips += stats.trips;
    if (stats.nonsense > 0) world_.Complain(fmt::format("member {} met nonsense", number_));
    if (stats.chunks_owned + stats.extents_owned > 0)
      world_.Complain(fmt::format("member {} left with chunks", number_));
  }

  World& world_;
  const int number_;
  Random random_;
  std::unique_ptr<fabric::Client> client_;
  std::optional<Membership> membership_;
  std::optional<Allocator> allocator_;
  std::map<uint64_t, uint64_t> pins_;  // operations in flight by the epoch known when they began
  uint64_t sequence_ = 0;
  int lives_ = 0;
  bool maintaining_ = false;
  bool quiesce_ = false;
  RegistryView view_;
  std::vector<Task<Done>> helpers_;
  std::optional<Error> helper_failed_;
  std::optional<Task<Done>> task_;
};

inline void Drive(World& world, std::vector<std::unique_ptr<Member>>& members, bool audit) {
  constexpr uint64_t kMostEvents = 3'000'000;
  for (auto& member : members) member->Start(audit);
  const uint64_t give_up = world.fabric.events() + kMostEvents;
  size_t running = members.size();
  while (running > 0) {
    const bool moved = world.fabric.Step();
    if (!audit && world.fabric.events() == world.shape.first_dies_at && members[0]->running()) {
      world.fabric.Crash(members[0]->client().id());
    }
    running = 0;
    for (auto& member : members) {
      if (member->running()) member->HandleProgress();
      if (!member->running() && !audit && world.report.ok() && member->MayComeBack()) member->Start(audit);
      if (member->running()) ++running;
    }
    if (running == 0) break;
    if (moved && world.fabric.events() < give_up && world.report.ok()) continue;
    if (world.report.ok()) world.Complain(fmt::format("stuck: {} members wait for ever", running));
    for (auto& member : members) member->Vanish();
    return;
  }
}

// Every client lives and leaves or dies; then an auditor cleans up, and nothing may be left.
inline WorldReport RunWorld(const WorldShape& shape, fabric::sim::SimOptions options) {
  const uint64_t seed = options.seed;
  World world(shape, std::move(options));
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i < shape.members; ++i) {
    members.push_back(
        std::make_unique<Member>(world, i + 1, Random(seed).Fork(static_cast<uint64_t>(i) + 1).Next()));
  }
  Drive(world, members, /*audit=*/false);
  world.report.verbs = world.fabric.verbs_posted();
  world.report.fault_fired = world.fabric.fault_fired();
  if (world.report.ok()) {
    world.fabric.StopFaults();
    std::vector<std::unique_ptr<Member>> auditor;
    auditor.push_back(std::make_unique<Member>(world, 100, seed));
    Drive(world, auditor, /*audit=*/true);
  }
  for (uint64_t chunk = 0; chunk < world.geometry.chunks() && world.report.ok(); ++chunk) {
    const uint64_t word = world.Peek(world.geometry.chunk_word(chunk));
    if (word == 0) continue;
    world.Complain(fmt::format("chunk {} is left: state {}, argument {}, owner {:#x}", chunk,
                               static_cast<int>(ChunkWord(word).state()), ChunkWord(word).argument(),
                               ChunkWord(word).owner().bits()));
  }
  return world.report;
}

}  // namespace farside::pool
