// Scenes for whole clients of a pool. Each returns what went wrong, or nothing; they are played with and without
// planted bugs.
#pragma once

#include <string>

#include "tests/simulation/pool_hand.h"

namespace farside::pool {

// A chunk with a leak loses its owner after the adopter has looked at the chunk table, and before it has swept. Whoever
// buries the dead one without a second look never finds the leak.
inline std::string ChunkLosesItsOwnerDuringTheSweep() {
  PoolRun run(PoolCalm());
  PoolHand dead(run);
  PoolHand leaver(run);
  PoolHand adopter(run);
  for (PoolHand* hand : {&dead, &leaver, &adopter}) {
    if (!hand->Join().ok()) return "somebody cannot join";
  }
  const uint32_t grave = dead.self().slot();
  if (!leaver.Publish(0).ok() || !leaver.Publish(1).ok() || !dead.Unlink(0).ok()) return "nothing is there";
  dead.Die();  // with what it had to give back
  for (int i = 0; i < 7; ++i) {
    if (!adopter.Maintain().ok() || !leaver.Maintain().ok()) return "somebody cannot sync";
    adopter.Wait(kTestLease / 8);
  }
  adopter.Wait(kTestLease / 4);  // the leaver syncs no more, and so does not hear of the death
  {
    fabric::Op op(adopter.client(), fabric::OpKind::kMaintenance);
    Task<Done> repair = adopter.pool().Maintain(op);
    repair.Start();
    while (!adopter.walking()) {
      if (repair.done() || !run.world().Step()) return "nobody was fenced";
    }
    if (!leaver.LeaveWithoutSync().ok()) return "the leaver knows nothing, so it may leave";
    while (!repair.done() && run.world().Step()) continue;
    if (!repair.TakeResult().ok()) return "the repair fails";
  }
  for (int i = 0; i < 4; ++i) {
    if (!adopter.Maintain().ok()) return "the adopter cannot sync";
  }
  if (run.SlotWord(grave).state() != ClientState::kFree) return "the dead one is not buried";
  if (!adopter.Unlink(1).ok() || !adopter.Leave().ok()) return "the adopter cannot leave";
  return ChunksInUse(run) == 0 ? "" : "a block is lost";
}

}  // namespace farside::pool
