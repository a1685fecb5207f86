#include "tests/pool/client_scenarios.h"

#include <string>

namespace farside::pool {

std::string ChunkLosesItsOwnerDuringTheSweep() {
  PoolRun run(PoolCalm());
  ManualClient dead(run);
  ManualClient leaver(run);
  ManualClient adopter(run);
  for (ManualClient* client : {&dead, &leaver, &adopter}) {
    if (!client->Join().ok()) return "a client cannot join";
  }
  const uint32_t dead_slot = dead.self().slot();
  if (!leaver.Publish(0).ok() || !leaver.Publish(1).ok() || !dead.Unlink(0).ok()) return "nothing is there";
  dead.Die();  // with what it had to give back
  for (int i = 0; i < 7; ++i) {
    if (!adopter.Maintain().ok() || !leaver.Maintain().ok()) return "a client cannot sync";
    adopter.Wait(kTestLease / 8);
  }
  adopter.Wait(kTestLease / 4);  // the leaver syncs no more, and so does not hear of the death
  {
    fabric::Op op(adopter.client(), fabric::OpKind::kMaintenance);
    Task<Done> repair = adopter.pool().Maintain(op);
    repair.Start();
    while (!adopter.walking()) {
      if (repair.done() || !run.world().Step()) return "no client was fenced";
    }
    if (!leaver.LeaveWithoutSync().ok()) return "the leaver knows nothing, so it may leave";
    while (!repair.done() && run.world().Step()) continue;
    if (!repair.TakeResult().ok()) return "the repair fails";
  }
  for (int i = 0; i < 4; ++i) {
    if (!adopter.Maintain().ok()) return "the adopter cannot sync";
  }
  if (run.SlotWord(dead_slot).state() != ClientState::kFree) return "the dead client still has its slot";
  if (!adopter.Unlink(1).ok() || !adopter.Leave().ok()) return "the adopter cannot leave";
  return ChunksInUse(run) == 0 ? "" : "a block is lost";
}

std::string OnlyOneIsDeadAndHasLeftMemory() {
  PoolRun run(PoolCalm(), SmallGeometry(2));
  ManualClient alive(run);
  ManualClient dead(run);
  if (!alive.Join().ok() || !dead.Join().ok()) return "a client cannot join";
  alive.pool().set_walk({});
  if (!dead.Publish(0).ok() || !dead.Publish(1).ok() || !dead.Unlink(0).ok()) return "nothing is there";
  dead.Die();
  ManualClient newcomer(run);
  fabric::Op op(newcomer.client(), fabric::OpKind::kMaintenance);
  Task<Done> join = newcomer.Join(op);
  join.Start();
  while (!join.done()) {
    if (!alive.Maintain().ok()) return "a client cannot sync";
    alive.Wait(kTestLease / 16);
  }
  if (!join.TakeResult().ok()) return "";  // as it should be
  if (!alive.LeaveWithoutSync().ok() || !newcomer.Unlink(1).ok() || !newcomer.Leave().ok()) {
    return "a client cannot leave";
  }
  return ChunksInUse(run) == 0 ? "" : "a block is lost";
}

std::string LeaverHasNotHeardOfTheDeadWhenANewcomerComes() {
  PoolRun run(PoolCalm(), SmallGeometry(2));
  ManualClient leaver(run);
  ManualClient dead(run);
  if (!leaver.Join().ok() || !dead.Join().ok()) return "a client cannot join";
  if (!leaver.Publish(0).ok() || !leaver.Publish(1).ok() || !dead.Unlink(0).ok()) return "nothing is there";
  const uint32_t dead_slot = dead.self().slot();
  dead.Die();
  leaver.pool().set_walk({});
  ManualClient newcomer(run);
  fabric::Op op(newcomer.client(), fabric::OpKind::kMaintenance);
  Task<Done> join = newcomer.Join(op);
  join.Start();
  Nanos next = run.world().Now();
  const Nanos last_sync = next + kTestLease * 3 / 4;
  while (run.SlotWord(dead_slot).state() == ClientState::kLive) {
    if (run.world().Now() >= next && next <= last_sync) {
      if (!leaver.Maintain().ok()) return "the leaver cannot sync";
      next += kTestLease / 8;
    }
    if (!run.world().Step()) return "no client was fenced";
  }
  leaver.Wait(kTestLease / 4);  // a newcomer in a hurry releases the dead client's slot now
  if (!leaver.LeaveWithoutSync().ok()) return "the leaver knows nothing, so it may leave";
  while (!join.done() && run.world().Step()) continue;
  if (!join.TakeResult().ok()) return "there is room for the newcomer";
  for (int i = 0; i < 4; ++i) {
    if (!newcomer.Maintain().ok()) return "the newcomer cannot sync";
  }
  if (!newcomer.Unlink(1).ok() || !newcomer.Leave().ok()) return "the newcomer cannot leave";
  return ChunksInUse(run) == 0 ? "" : "a block is lost";
}

std::string AWalkTakesLongerThanALease() {
  PoolRun run(PoolCalm());
  ManualClient dead(run);
  ManualClient watcher(run);
  ManualClient survivor(run);
  for (ManualClient* client : {&dead, &watcher, &survivor}) {
    if (!client->Join().ok()) return "a client cannot join";
  }
  watcher.pool().set_walk({});
  survivor.set_walk_steps(24);
  if (!survivor.Publish(0).ok() || !survivor.Publish(1).ok() || !dead.Unlink(0).ok()) {
    return "nothing is there";
  }
  const uint32_t dead_slot = dead.self().slot();
  dead.Die();
  for (int round = 0; round < 32; ++round) {
    fabric::Op op(survivor.client(), fabric::OpKind::kMaintenance);
    Task<Done> maintain = survivor.pool().Maintain(op);
    maintain.Start();
    while (!maintain.done()) {
      if (!watcher.Maintain().ok()) return "the watcher cannot sync";
      watcher.Wait(kTestLease / 16);
    }
    if (!maintain.TakeResult().ok()) return "the survivor is fenced";
    watcher.Wait(kTestLease / 16);
  }
  if (run.SlotWord(dead_slot).state() != ClientState::kFree) return "the dead client still has its slot";
  if (survivor.walks() != 1) return "the survivor sweeps more than once";
  if (!watcher.Leave().ok() || !survivor.Unlink(1).ok() || !survivor.Leave().ok()) {
    return "a client cannot leave";
  }
  return ChunksInUse(run) == 0 ? "" : "a block is lost";
}

std::string AVerbWithoutAWaiterOutlivesItsOperation() {
  PoolRun run(PoolCalm());
  ManualClient reader(run);
  ManualClient writer(run);
  if (!reader.Join().ok() || !writer.Join().ok()) return "a client cannot join";
  if (!writer.Publish(0).ok() || !reader.DetachCas(0).ok()) return "nothing is there";
  run.world().Hold(reader.client().id(), ManualClient::kNode, 2 * kTestLease);
  const uint64_t block = writer.BlockOf(0);
  if (!writer.Unlink(0).ok()) return "nothing is there";
  if (!reader.client().HasUnawaited()) return "nothing is on its way";
  for (size_t root = 1; reader.client().HasUnawaited(); root = 1 + root % 6) {
    if (!reader.Sync().ok() || !writer.Maintain().ok() || !writer.Publish(root).ok()) {
      return "a client cannot go on";
    }
    if (writer.BlockOf(root) == block && reader.client().HasUnawaited()) {
      return "memory is used again under a verb that is on its way";
    }
    if (!writer.Unlink(root).ok()) return "nothing is there";
    reader.Wait(kTestLease / 8);
  }
  return "";
}

std::string AVerbWithoutAWaiterIsAlwaysOnItsWay() {
  PoolRun run(PoolCalm());
  ManualClient busy(run);
  ManualClient other(run);
  if (!busy.Join().ok() || !other.Join().ok()) return "a client cannot join";
  if (!other.Publish(0).ok()) return "nothing is there";
  const uint64_t before = busy.pool().published_epoch(ManualClient::kNode);
  for (int i = 0; i < 20; ++i) {
    if (!busy.DetachCas(0).ok()) return "a client cannot go on";
    run.world().Hold(busy.client().id(), ManualClient::kNode, kTestLease / 2);
    if (!busy.Sync().ok() || !other.Sync(/*raise=*/true).ok()) return "a client cannot sync";
    busy.Wait(kTestLease / 8);
    if (!busy.client().HasUnawaited()) return "nothing is on its way";
  }
  return busy.pool().published_epoch(ManualClient::kNode) > before ? "" : "the epoch is never published";
}

std::string AClientLeavesWithAVerbOnItsWay() {
  PoolRun run(PoolCalm());
  ManualClient leaver(run);
  ManualClient writer(run);
  if (!leaver.Join().ok() || !writer.Join().ok()) return "a client cannot join";
  if (!writer.Publish(0).ok() || !leaver.DetachCas(0).ok()) return "nothing is there";
  run.world().Hold(leaver.client().id(), ManualClient::kNode, kTestLease / 2);
  if (!leaver.client().HasUnawaited()) return "nothing is on its way";
  const uint32_t slot = leaver.self().slot();
  if (!leaver.Leave().ok()) return "the client cannot leave";
  if (run.SlotWord(slot).state() != ClientState::kFree) return "the client still has its slot";
  return leaver.client().HasUnawaited() ? "a verb can land after its client has left" : "";
}

std::string AReaderIsAtABlockThatIsEvacuated() {
  PoolRun run(PoolCalm());
  ManualClient reader(run);
  ManualClient writer(run);
  if (!reader.Join().ok() || !writer.Join().ok()) return "a client cannot join";
  if (!writer.Publish(0).ok()) return "nothing is there";
  Allocator& allocator = writer.pool().allocator(ManualClient::kNode);
  const PoolClient::Pin pin = reader.pool().Begin();
  const uint64_t block = writer.BlockOf(0);
  const auto victims =
      writer.Try([&](fabric::Op& op) { return allocator.BeginEvacuation(op, {.any_room = true}); });
  if (!victims.ok() || victims->size() != 1) return "nothing is evacuated";
  if (!writer.Unlink(0).ok()) return "nothing is there";
  allocator.EndEvacuation(victims->front().chunk);
  for (size_t root = 1; root < ManualClient::kRoots; ++root) {
    if (!writer.Maintain().ok() || !writer.Publish(root).ok()) return "the writer cannot go on";
    if (writer.BlockOf(root) == block) return "memory is used again under an operation";
  }
  return "";
}

}  // namespace farside::pool
