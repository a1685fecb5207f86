// Joining a pool whose client slots are all taken, by the living or by the dead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "tests/pool/client_scenarios.h"
#include "tests/pool/manual_client.h"
#include "tests/support/sanitized.h"

namespace farside::pool {
namespace {

using fabric::Op;
using fabric::OpKind;
using testing::HasSubstr;

// Until the task has ended, others live on.
Result<Done> RunBesides(PoolRun& run, std::deque<ManualClient>& alive, Task<Done> task) {
  task.Start();
  Nanos next = run.world().Now();
  while (!task.done()) {
    if (run.world().Now() >= next) {
      for (ManualClient& client : alive) EXPECT_TRUE(client.Maintain().ok());
      next = run.world().Now() + kTestLease / 8;
    }
    if (!task.done() && !run.world().Step()) alive[0].Wait(kTestLease / 8);
  }
  return task.TakeResult();
}

Result<Done> JoinBesides(PoolRun& run, std::deque<ManualClient>& alive, ManualClient& newcomer) {
  Op op(newcomer.client(), OpKind::kMaintenance);
  return RunBesides(run, alive, newcomer.Join(op));
}

void Enter(PoolRun& run, std::deque<ManualClient>& clients, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    clients.emplace_back(run);
    ASSERT_TRUE(clients.back().Join().ok());
  }
}

uint32_t SlotsInState(PoolRun& run, ClientState state) {
  uint32_t slots = 0;
  for (uint32_t slot = 0; slot < run.geometry().client_slots; ++slot)
    slots += run.SlotWord(slot).state() == state;
  return slots;
}

// Releases the slots of dead clients, empties the table and leaves. Then nothing may be left.
void ExpectNothingIsLost(PoolRun& run, ManualClient& last) {
  for (int i = 0; i < 32; ++i) {
    ASSERT_TRUE(last.Maintain().ok());
    last.Wait(kTestLease / 8);
  }
  EXPECT_EQ(SlotsInState(run, ClientState::kFree) + 1, run.geometry().client_slots);
  for (size_t root = 0; root < ManualClient::kRoots; ++root) {
    if (run.Word(run.geometry().catalog() + root * 8) == 0) continue;
    ASSERT_TRUE(last.Unlink(root).ok());
  }
  ASSERT_TRUE(last.Leave().ok());
  EXPECT_EQ(ChunksInUse(run), 0u);
}

constexpr size_t kDead = 3;

// Every client has died, with blocks in the table, and blocks that they had unlinked from the chunks of
// others.
void LetAllDie(PoolRun& run, std::deque<ManualClient>& dead) {
  Enter(run, dead, kDead);
  for (size_t i = 0; i < kDead; ++i) {
    ASSERT_TRUE(dead[i].Publish(2 * i).ok());
    ASSERT_TRUE(dead[i].Publish(2 * i + 1).ok());
  }
  for (size_t i = 0; i < kDead; ++i) ASSERT_TRUE(dead[i].Unlink((2 * i + 3) % 6).ok());
  for (ManualClient& client : dead) client.Die();
}

TEST(PoolJoin, AllSlotsTakenByTheLiving_IsAnErrorThatSaysWhatToDo) {
  // Given two slots, and two clients that live.
  // Expect a third one to be told so as soon as it has seen both of them beat, and to be let in when one has
  // left.
  PoolRun run(PoolCalm(), SmallGeometry(2));
  std::deque<ManualClient> alive;
  Enter(run, alive, 2);
  ManualClient newcomer(run);
  const Nanos began = run.world().Now();
  const Result<Done> full = JoinBesides(run, alive, newcomer);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(full.error().message(), HasSubstr("all 2 client slots of node 0 are taken; close a client"));
  EXPECT_LT(run.world().Now() - began, kTestLease);
  ASSERT_TRUE(alive[0].Leave().ok());
  EXPECT_TRUE(newcomer.Join().ok());
}

TEST(PoolJoin, AllSlotsTakenByTheDead_ANewcomerIsLetInAndAdoptsEverything) {
  // Given as many clients that died as there are slots, with blocks in the table, blocks that they had
  // unlinked, and chunks.
  // When a client comes.
  // Expect it to be let in, and nothing to be lost.
  PoolRun run(PoolCalm(), SmallGeometry(kDead));
  std::deque<ManualClient> dead;
  LetAllDie(run, dead);
  ManualClient newcomer(run);
  const Result<Done> joined = newcomer.Join();
  ASSERT_TRUE(joined.ok()) << joined.error().ToString();
  ExpectNothingIsLost(run, newcomer);
}

// Puts a slot into a state that no client writes.
void DamageSlot(PoolRun& run, uint32_t slot, uint64_t state, fabric::ClientId client) {
  const uint64_t word = ClientWord(ClientState::kFree, 1 + slot, client).word();
  std::byte* const at = run.world().memory(ManualClient::kNode).data() + run.geometry().client_slot(slot);
  StoreU64(at, ClientWord::State::Set(word, state));
}

TEST(PoolJoin, AllSlotsInStatesThatDoNotExist_ANewcomerIsLetInAtOnce) {
  // Given a registry that was overwritten. The words name no client, a client that never was, or the
  // newcomer. When a client comes.
  // Expect it to be let in without waiting for a lease, to clear up, and to be left alone by itself.
  PoolRun run(PoolCalm(), SmallGeometry(4));
  ManualClient newcomer(run);
  DamageSlot(run, 0, 4, fabric::ClientId::kNone);
  DamageSlot(run, 1, 9, fabric::ClientId{4711});
  DamageSlot(run, 2, 15, newcomer.client().id());
  DamageSlot(run, 3, 8, fabric::ClientId{4711});
  const Nanos began = run.world().Now();
  const Result<Done> joined = newcomer.Join();
  ASSERT_TRUE(joined.ok()) << joined.error().ToString();
  EXPECT_LT(run.world().Now() - began, kTestLease);
  ExpectNothingIsLost(run, newcomer);
}

TEST(PoolJoin, TheDeadAreInStatesThatDoNotExist_TheirMemoryIsAdopted) {
  // Given as many clients that died as there are slots, with memory; and slots that were damaged afterwards.
  // When a client comes.
  // Expect it to be let in, and nothing to be lost.
  PoolRun run(PoolCalm(), SmallGeometry(kDead));
  std::deque<ManualClient> dead;
  LetAllDie(run, dead);
  for (uint32_t slot = 0; slot < kDead; ++slot) {
    std::byte* const at = run.world().memory(ManualClient::kNode).data() + run.geometry().client_slot(slot);
    StoreU64(at, ClientWord::State::Set(LoadU64(at), 9));
  }
  ManualClient newcomer(run);
  const Result<Done> joined = newcomer.Join();
  ASSERT_TRUE(joined.ok()) << joined.error().ToString();
  ExpectNothingIsLost(run, newcomer);
}

TEST(PoolJoin, OneOfTheClientsIsDeadAndOwnsNothing_ItsSlotIsUsed) {
  // Given two slots, a client that lives but knows no tables, so that it repairs nothing, and one that died.
  // Expect a third one to be let in.
  PoolRun run(PoolCalm(), SmallGeometry(2));
  std::deque<ManualClient> alive;
  Enter(run, alive, 1);
  alive[0].pool().set_walk({});
  ASSERT_TRUE(alive[0].Publish(0).ok());
  ManualClient dead(run);
  ASSERT_TRUE(dead.Join().ok());
  dead.Die();
  ManualClient newcomer(run);
  const Result<Done> joined = JoinBesides(run, alive, newcomer);
  EXPECT_TRUE(joined.ok()) << joined.error().ToString();
}

TEST(PoolJoin, TheDeadOneHasMemoryAndNoClientCanAdoptIt_TheErrorSaysWhatToDo) {
  // Given the same, with a dead client that has left memory.
  // Expect an error that says which client can help; and when it does help, a newcomer is let in and nothing
  // is lost.
  PoolRun run(PoolCalm(), SmallGeometry(2));
  std::deque<ManualClient> alive;
  Enter(run, alive, 1);
  alive[0].pool().set_walk({});
  ManualClient dead(run);
  ASSERT_TRUE(dead.Join().ok());
  ASSERT_TRUE(dead.Publish(0).ok());
  dead.Die();
  ManualClient newcomer(run);
  const Result<Done> full = JoinBesides(run, alive, newcomer);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(
      full.error().message(),
      HasSubstr("all 2 client slots of node 0 are taken, 1 of them by clients that died, whose memory only a "
                "client in the pool can adopt; let one that has its tables open run for a few leases"));
  EXPECT_EQ(SlotsInState(run, ClientState::kFenced), 1u);

  alive[0].WalkTheTable();
  const Result<Done> joined = JoinBesides(run, alive, newcomer);
  ASSERT_TRUE(joined.ok()) << joined.error().ToString();
  Op op(newcomer.client(), OpKind::kMaintenance);
  ASSERT_TRUE(RunBesides(run, alive, newcomer.pool().Leave(op)).ok());
  ExpectNothingIsLost(run, alive[0]);
}

TEST(PoolJoin, TheOnlySlotIsThatOfADeadClient_ItIsUsed) {
  PoolRun run(PoolCalm(), SmallGeometry(1));
  ManualClient dead(run);
  ASSERT_TRUE(dead.Join().ok());
  ASSERT_TRUE(dead.Publish(0).ok());
  dead.Die();
  ManualClient newcomer(run);
  const Result<Done> joined = newcomer.Join();
  ASSERT_TRUE(joined.ok()) << joined.error().ToString();
  EXPECT_TRUE(newcomer.Unlink(0).ok());
  EXPECT_TRUE(newcomer.Leave().ok());
}

TEST(PoolJoin, OneOfTwoNodesIsFull_TheOtherIsLeft) {
  // Given two nodes, the second of which has room for one client.
  // When another one joins the first and is refused by the second.
  // Expect that it has not left a slot behind.
  const std::vector<Geometry> geometries = {SmallGeometry(4), SmallGeometry(1)};
  fabric::sim::SimOptions sim = PoolCalm();
  sim.region_bytes = {geometries[0].region_bytes, geometries[1].region_bytes};
  fabric::sim::SimFabric world(std::move(sim));
  ClientOptions options;
  options.lease.lease = kTestLease;
  const auto client = std::move(*world.Connect());
  Op op(*client, OpKind::kMaintenance);
  const std::unique_ptr<PoolClient> alive =
      std::move(*fabric::Run(*client, PoolClient::Join(op, *client, geometries, options)));
  const auto newcomer = std::move(*world.Connect());
  Op joining(*newcomer, OpKind::kMaintenance);
  auto join = PoolClient::Join(joining, *newcomer, geometries, options);
  join.Start();
  while (!join.done()) {
    ASSERT_TRUE(fabric::Run(*client, alive->Maintain(op)).ok());
    if (join.done()) break;
    ASSERT_TRUE(world.Step());
  }
  const auto refused = join.TakeResult();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("all 1 client slots of node 1 are taken; close a client"));
  uint64_t word = 0;
  std::memcpy(&word, world.memory(fabric::NodeId{0}).data() + geometries[0].client_slot(1), sizeof(word));
  EXPECT_EQ(ClientWord(word).state(), ClientState::kFree);
  EXPECT_EQ(ClientWord(word).generation(), 1u) << "it was there";
}

TEST(PoolJoin, LeaverHasNotHeardOfTheDead_NothingIsLost) {
  // Given a client that dies with a block that it had to give back, in the chunk of another.
  // When that one leaves, as a newcomer waits for a slot and before it has heard of the death.
  // Expect the block to be found.
  EXPECT_EQ(LeaverHasNotHeardOfTheDeadWhenANewcomerComes(), "");
}

// ---- with faults

Task<Done> JoinMaintainLeave(fabric::Client& fabric_client, PoolRun& run) {
  Op op(fabric_client, OpKind::kMaintenance);
  ClientOptions options;
  options.lease.lease = kTestLease;
  const std::vector<Geometry> geometries = {run.geometry()};
  std::unique_ptr<PoolClient> client = co_await PoolClient::Join(op, fabric_client, geometries, options);
  client->set_walk([&run](Op& walking, Reach& reach) { return ManualClient::Walk(walking, run, reach); });
  for (int i = 0; i < 4; ++i) {
    co_await client->Maintain(op);
    co_await op.Pause(kTestLease / 8);
  }
  co_await client->Leave(op);
  co_return Done{};
}

// The memory that they leave.
std::vector<std::byte> MemoryOfTheDead() {
  PoolRun run(PoolCalm(), SmallGeometry(kDead));
  std::deque<ManualClient> dead;
  LetAllDie(run, dead);
  const auto memory = run.world().memory(ManualClient::kNode);
  return std::vector<std::byte>(memory.begin(), memory.end());
}

RunOutcome RunFullRegistry(const fabric::sim::SimOptions& options, const std::vector<std::byte>& memory) {
  PoolRun run(options, SmallGeometry(kDead));
  for (size_t i = 0; i < kDead; ++i) {
    const auto gone = std::move(*run.world().Connect());  // the client as which the fabric knows the dead
    run.world().Crash(gone->id());
  }
  std::copy(memory.begin(), memory.end(), run.world().memory(ManualClient::kNode).begin());
  for (int i = 0; i < 2; ++i) {
    run.StartClient([&run](fabric::Client& client) { return JoinMaintainLeave(client, run); });
  }
  run.Drive();
  RunOutcome outcome = run.EndOfScripts();
  ManualClient last(run);
  const Result<Done> joined = last.Join();
  if (!joined.ok()) run.Problem(joined.error().ToString());
  if (joined.ok()) ExpectNothingIsLost(run, last);
  outcome.problem = run.problem();
  return outcome;
}

TEST(PoolJoin, TwoComeToAFullRegistry_WithAFaultAtEveryVerb_NothingIsLost) {
  // Given a registry that is full of dead clients, and two newcomers at once.
  // When each kind of fault happens at each of their verbs in turn.
  // Expect that a third one can still join, that it can release all their slots, and that no chunk is lost.
  const std::vector<std::byte> memory = MemoryOfTheDead();
  const auto run = [&](const fabric::sim::SimOptions& options) { return RunFullRegistry(options, memory); };
  uint64_t faults = 0;
  for (uint64_t seed = 1; seed <= std::max<uint64_t>(4 / kFewer, 1); ++seed) {
    ASSERT_EQ(ForEveryFault(PoolChaos(seed, /*faults=*/false), run, faults), "");
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(faults, 300u);
}

}  // namespace
}  // namespace farside::pool
