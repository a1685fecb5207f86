#include "tests/pool/memory/allocator_scenarios.h"

#include <memory>
#include <string>

namespace farside::pool {

namespace {

// A client that is going to die has unlinked a block of a chunk that another client, which is going to leave,
// owns; a second block of that chunk stays.
class LeakScenario : public Scenario {
 public:
  LeakScenario() : cast{Enter(), Enter(), Enter(), Owner()} {
    cast.dead_slot = cast.dead.membership().self();
    Replace(cast.leaver, 0, 64);
    Replace(cast.leaver, 1, 64);
    Delete(cast.dead, 0);
  }
  struct Cast {
    Member& dead;
    Member& leaver;
    Member& adopter;
    Owner dead_slot;
  } cast;
};

}  // namespace

std::string LeaverHasHeardOfADeath() {
  LeakScenario scenario;
  auto& [dead, leaver, adopter, dead_slot] = scenario.cast;
  scenario.Kill(dead);
  scenario.WaitForFence({&adopter, &leaver});
  scenario.Adopt(adopter, dead_slot);
  scenario.SweepAll(adopter, {&leaver});
  if (!scenario.ReleaseSlot(adopter, dead_slot)) return "the slot of the dead client cannot be released";

  const Result<Done> left = scenario.TryLeaveAll(leaver);
  if (left.ok() || left.error().code() != ErrorCode::kContended) return "the leaver leaves a leak behind";
  scenario.Delete(adopter, 1);
  scenario.Leave({&leaver, &adopter});
  return scenario.Problem();
}

std::string NewcomerTakesAChunkWithALeak() {
  LeakScenario scenario;
  auto& [dead, leaver, adopter, dead_slot] = scenario.cast;
  if (!scenario.LeaveAlone(leaver)) return "the leaver knows nothing, so it may leave";
  scenario.Kill(dead);
  scenario.WaitForFence({&adopter});
  Member& newcomer = scenario.Enter();
  scenario.Replace(newcomer, 2, 64);
  if (newcomer.allocator().stats().chunks_owned != 1) return "no chunk was taken";
  if (!newcomer.allocator().SweepDue()) return "the newcomer does not know that its chunk may hold a leak";
  scenario.Adopt(adopter, dead_slot);
  scenario.SweepAll(adopter, {&newcomer});
  if (!scenario.ReleaseSlot(adopter, dead_slot)) return "the slot of the dead client cannot be released";
  scenario.Delete(adopter, 1);
  scenario.Delete(adopter, 2);
  scenario.Leave({&adopter, &newcomer});
  return scenario.Problem();
}

std::string ChunkLosesItsOwnerAfterTheFirstLook() {
  LeakScenario scenario;
  auto& [dead, leaver, adopter, dead_slot] = scenario.cast;
  scenario.Kill(dead);
  // The leaver syncs for the last time before the dead one is fenced.
  for (int i = 0; i < 7; ++i) {
    scenario.Maintain(adopter);
    scenario.Maintain(leaver);
    adopter.Now([&](fabric::Op& op) { return adopter.Wait(op, scenario.world.shape.lease / 8); });
  }
  adopter.Now([&](fabric::Op& op) { return adopter.Wait(op, scenario.world.shape.lease / 4); });
  scenario.Maintain(adopter);
  if (adopter.view().fenced.size() != 1) return "no client was fenced";
  if (scenario.Adopt(adopter, dead_slot) != 0) return "there was nothing to take yet";
  if (!scenario.LeaveAlone(leaver)) return "the leaver knows nothing, so it may leave";
  scenario.SweepAll(adopter, {});
  if (adopter.allocator().MayReleaseSlot(dead_slot)) return "the adopter has not looked again";
  if (scenario.Adopt(adopter, dead_slot) != 1) return "the second look finds nothing";
  scenario.SweepAll(adopter, {});
  if (!scenario.ReleaseSlot(adopter, dead_slot)) return "the slot of the dead client cannot be released";
  scenario.Delete(adopter, 1);
  scenario.Leave({&adopter});
  return scenario.Problem();
}

std::string SweeperReadsWhatADeadOneUnlinked() {
  Scenario scenario;
  Member& dead = scenario.Enter();
  Member& sweeper = scenario.Enter();
  Member& first_dead = scenario.Enter();
  scenario.Replace(sweeper, 0, 64);
  scenario.Kill(first_dead);
  scenario.WaitForFence({&sweeper, &dead});
  if (!sweeper.allocator().SweepDue()) return "no sweep is due";
  for (const Owner dead_slot : sweeper.view().fenced) scenario.Adopt(sweeper, dead_slot);
  {
    Sweep sweep(sweeper.allocator());
    const auto reader = std::make_unique<Member::Pin>(sweeper);  // holds a pointer to the block
    scenario.Delete(dead, 0);
    scenario.Kill(dead);
    scenario.MarkAll(sweep);
    scenario.Maintain(sweeper);
    sweep.WalkEnded(sweeper.membership().known_epoch());
    scenario.WaitForFence({&sweeper});
    if (sweep.Ready(sweeper.view())) return "the sweep does not wait for the sweeper's own reader";
  }
  scenario.WaitForFence({&sweeper});
  scenario.Leave({&sweeper});
  return scenario.Problem();
}

}  // namespace farside::pool
