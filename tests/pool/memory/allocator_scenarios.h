// Scenarios for the allocator: what a few members do to each other, step by step, where chance would need too
// long.
//
// Each returns what went wrong, or nothing. They are played with and without planted bugs.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/pool/memory/allocator_world.h"

namespace farside::pool {

class Scenario {
 public:
  explicit Scenario(const WorldShape& shape = {}) : world(shape, Calm()) {}
  ~Scenario() {
    for (auto& member : members_) {
      if (member->running()) member->Vanish();
    }
  }

  Member& Enter() {
    members_.push_back(
        std::make_unique<Member>(world, static_cast<int>(members_.size()) + 1, members_.size() + 1));
    Member& member = *members_.back();
    member.Connect();
    member.Now([&](fabric::Op& op) { return member.membership().Join(op); });
    return member;
  }
  void Kill(Member& member) {
    world.fabric.Crash(member.client().id());
    member.Vanish();
  }
  void Maintain(Member& member) {
    member.Now([&](fabric::Op& op) { return member.Maintain(op, true); });
  }
  void Replace(Member& member, uint64_t slot, uint64_t bytes) {
    member.Now([&](fabric::Op& op) { return member.Replace(op, slot, bytes); });
  }
  void Delete(Member& member, uint64_t slot) {
    member.Now([&](fabric::Op& op) { return member.Delete(op, slot); });
  }
  uint64_t Adopt(Member& member, Owner dead) {
    return member.Now([&](fabric::Op& op) { return member.allocator().Adopt(op, dead); });
  }
  // False if there is still something to take, or to sweep.
  bool ReleaseSlot(Member& member, Owner dead) {
    if (Adopt(member, dead) != 0 || !member.allocator().MayReleaseSlot(dead)) return false;
    member.Now([&](fabric::Op& op) { return member.membership().ReleaseSlot(op, dead); });
    return true;
  }
  // Time passes for clients that beat, until the others are fenced.
  void WaitForFence(std::vector<Member*> alive) {
    for (int i = 0; i < 24; ++i) {
      for (Member* member : alive) Maintain(*member);
      alive[0]->Now([&](fabric::Op& op) { return alive[0]->Wait(op, world.shape.lease / 8); });
    }
  }
  void MarkAll(Sweep& sweep) {
    for (uint64_t slot = 0; slot < world.shape.slots; ++slot) {
      const SlotWord word(world.Peek(world.SlotAt(slot).offset));
      if (!word.empty()) sweep.Mark(word.block(), word.bytes());
    }
  }
  // With `others` syncing beside it, as they do.
  void SweepAll(Member& member, std::vector<Member*> others) {
    Sweep sweep(member.allocator());
    MarkAll(sweep);
    Maintain(member);
    sweep.WalkEnded(member.membership().known_epoch());
    for (int i = 0; i < 8 && !sweep.Ready(member.view()); ++i) {
      for (Member* other : others) Maintain(*other);
      Maintain(member);
    }
    if (!sweep.Ready(member.view())) world.Complain("the sweep does not become ready");
    member.Now([&](fabric::Op& op) { return sweep.Finish(op); });
  }
  Result<Done> TryLeaveAll(Member& member) {
    return member.Try([&](fabric::Op& op) { return member.LeaveAll(op); });
  }
  // Without waiting for any client; false if it may not.
  bool LeaveAlone(Member& member) {
    if (!TryLeaveAll(member).ok()) return false;
    member.Now([&](fabric::Op& op) { return member.membership().Leave(op); });
    member.Vanish();
    return true;
  }
  // At once, because each waits for the others to move on.
  void Leave(std::vector<Member*> leaving) {
    std::vector<std::unique_ptr<fabric::Op>> ops;
    std::vector<Task<Done>> tasks;
    for (Member* member : leaving) {
      ops.push_back(std::make_unique<fabric::Op>(member->client(), fabric::OpKind::kMaintenance));
      tasks.push_back(member->Leave(*ops.back()));
      tasks.back().Start();
    }
    const auto running = [](const Task<Done>& task) { return !task.done(); };
    while (std::any_of(tasks.begin(), tasks.end(), running) && world.fabric.Step()) {
    }
    for (Task<Done>& task : tasks) {
      const Result<Done> left =
          task.done() ? task.TakeResult() : Error(ErrorCode::kContended, "a client cannot leave");
      if (!left.ok()) world.Complain(left.error().ToString());
    }
    tasks.clear();
    ops.clear();
    for (Member* member : leaving) member->Vanish();
  }
  // To be called when every client has left.
  std::string Problem() {
    for (uint64_t chunk = 0; chunk < world.geometry.chunks(); ++chunk) {
      const uint64_t word = world.Peek(world.geometry.chunk_word(chunk));
      if (word != 0) world.Complain(fmt::format("chunk {} is left: {:#x}", chunk, word));
    }
    return world.report.problem;
  }

  World world;

 private:
  static fabric::sim::SimOptions Calm() {
    fabric::sim::SimOptions options;
    options.chaos = fabric::sim::Chaos::Calm();
    return options;
  }

  std::vector<std::unique_ptr<Member>> members_;
};

// The dead one had unlinked a block of the leaver's, who knows of the death when it wants to leave.
std::string LeaverHasHeardOfADeath();

// The leaver has left without knowing; a newcomer takes its chunk before the adopter looks.
std::string NewcomerTakesAChunkWithALeak();

// The leaver is about to leave when the adopter looks for the first time.
std::string ChunkLosesItsOwnerAfterTheFirstLook();

// An operation of the sweeper holds a block that a client unlinks during the walk, and dies.
std::string SweeperReadsWhatADeadOneUnlinked();

}  // namespace farside::pool
