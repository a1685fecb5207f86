#include "tests/pool/memory/allocator_scenarios.h"

#include <memory>
#include <string>

namespace farside::pool {

namespace {

// Somebody who is going to die has unlinked a block of a chunk that somebody else, who is going to leave, owns; a
// second block of that chunk stays.
class LeakScene : public Scene {
 public:
  LeakScene() : cast{Enter(), Enter(), Enter(), Owner()} {
    cast.grave = cast.dead.membership().self();
    Replace(cast.leaver, 0, 64);
    Replace(cast.leaver, 1, 64);
    Delete(cast.dead, 0);
  }
  struct Cast {
    Member& dead;
    Member& leaver;
    Member& adopter;
    Owner grave;
  } cast;
};

}  // namespace

std::string LeaverHasHeardOfADeath() {
  LeakScene scene;
  auto& [dead, leaver, adopter, grave] = scene.cast;
  scene.Kill(dead);
  scene.WaitForFence({&adopter, &leaver});
  scene.Adopt(adopter, grave);
  scene.SweepAll(adopter, {&leaver});
  if (!scene.Bury(adopter, grave)) return "the dead cannot be buried";

  const Result<Done> left = scene.TryLeaveAll(leaver);
  if (left.ok() || left.error().code() != ErrorCode::kContended) return "the leaver leaves a leak behind";
  scene.Delete(adopter, 1);
  scene.Leave({&leaver, &adopter});
  return scene.Problem();
}

std::string NewcomerTakesAChunkWithALeak() {
  LeakScene scene;
  auto& [dead, leaver, adopter, grave] = scene.cast;
  if (!scene.LeaveAlone(leaver)) return "the leaver knows nothing, so it may leave";
  scene.Kill(dead);
  scene.WaitForFence({&adopter});
  Member& newcomer = scene.Enter();
  scene.Replace(newcomer, 2, 64);
  if (newcomer.allocator().stats().chunks_owned != 1) return "no chunk was taken";
  if (!newcomer.allocator().SweepDue()) return "the newcomer does not know that its chunk may hold a leak";
  scene.Adopt(adopter, grave);
  scene.SweepAll(adopter, {&newcomer});
  if (!scene.Bury(adopter, grave)) return "the dead cannot be buried";
  scene.Delete(adopter, 1);
  scene.Delete(adopter, 2);
  scene.Leave({&adopter, &newcomer});
  return scene.Problem();
}

std::string ChunkLosesItsOwnerAfterTheFirstLook() {
  LeakScene scene;
  auto& [dead, leaver, adopter, grave] = scene.cast;
  scene.Kill(dead);
  // The leaver syncs for the last time before the dead one is fenced.
  for (int i = 0; i < 7; ++i) {
    scene.Maintain(adopter);
    scene.Maintain(leaver);
    adopter.Now([&](fabric::Op& op) { return adopter.Wait(op, scene.world.shape.lease / 8); });
  }
  adopter.Now([&](fabric::Op& op) { return adopter.Wait(op, scene.world.shape.lease / 4); });
  scene.Maintain(adopter);
  if (adopter.view().fenced.size() != 1) return "nobody was fenced";
  if (scene.Adopt(adopter, grave) != 0) return "there was nothing to take yet";
  if (!scene.LeaveAlone(leaver)) return "the leaver knows nothing, so it may leave";
  scene.SweepAll(adopter, {});
  if (adopter.allocator().MayBury(grave)) return "the adopter has not looked again";
  if (scene.Adopt(adopter, grave) != 1) return "the second look finds nothing";
  scene.SweepAll(adopter, {});
  if (!scene.Bury(adopter, grave)) return "the dead cannot be buried";
  scene.Delete(adopter, 1);
  scene.Leave({&adopter});
  return scene.Problem();
}

std::string SweeperReadsWhatADeadOneUnlinked() {
  Scene scene;
  Member& dead = scene.Enter();
  Member& sweeper = scene.Enter();
  Member& first_dead = scene.Enter();
  scene.Replace(sweeper, 0, 64);
  scene.Kill(first_dead);
  scene.WaitForFence({&sweeper, &dead});
  if (!sweeper.allocator().SweepDue()) return "no sweep is due";
  for (const Owner grave : sweeper.view().fenced) scene.Adopt(sweeper, grave);
  {
    Sweep sweep(sweeper.allocator());
    const auto reader = std::make_unique<Member::Pin>(sweeper);  // holds a pointer to the block
    scene.Delete(dead, 0);
    scene.Kill(dead);
    scene.MarkAll(sweep);
    scene.Maintain(sweeper);
    sweep.WalkEnded(sweeper.membership().known_epoch());
    scene.WaitForFence({&sweeper});
    if (sweep.Ready(sweeper.view())) return "the sweep does not wait for the sweeper's own reader";
  }
  scene.WaitForFence({&sweeper});
  scene.Leave({&sweeper});
  return scene.Problem();
}

}  // namespace farside::pool
