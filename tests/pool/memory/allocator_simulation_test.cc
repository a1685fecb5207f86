// The allocator under every freedom of the contract, and under dying, sleeping and disconnected clients.
#include <gtest/gtest.h>

#include "fabric/sim/sim.h"
#include "tests/pool/memory/allocator_scenarios.h"
#include "tests/pool/memory/allocator_world.h"

namespace farside::pool {
namespace {

using fabric::sim::Chaos;
using fabric::sim::Fault;
using fabric::sim::FaultKind;
using fabric::sim::kAllFaultKinds;
using fabric::sim::SimOptions;

struct SweepReport {
  uint64_t crash_points = 0;
  uint64_t dead = 0;
  std::string problem;
};

// Each verb of a short run in turn is the place of each kind of fault, until there is no such verb.
void SweepFaults(uint64_t seed, const WorldShape& shape, SweepReport& report) {
  bool more = true;
  for (uint64_t verb = 0; more; ++verb) {
    more = false;
    for (FaultKind kind : kAllFaultKinds) {
      SimOptions options;
      options.seed = seed;
      options.chaos = Chaos::ForSeed(seed, /*faults=*/false);
      options.chaos.longest_sleep = shape.lease * 3;
      options.fault = Fault{verb, kind};
      const WorldReport run = RunWorld(shape, std::move(options));
      more |= run.verbs > verb;
      if (!run.fault_fired) continue;
      ++report.crash_points;
      report.dead += run.dead;
      if (run.ok()) continue;
      report.problem = fmt::format("seed {} verb {} {}: {}", seed, verb, Name(kind), run.problem);
      return;
    }
  }
}

TEST(PoolAllocator, MembersReplaceDeleteAndRead_NothingIsLostOrReused) {
  // Given members that share an array of slots, in worlds of all kinds, some of them with too little memory.
  // When every client has left.
  // Expect every reader to have found what was published, and every chunk to be free.
  WorldReport total;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SimOptions options;
    options.seed = seed;
    options.chaos = Chaos::ForSeed(seed, /*faults=*/false);
    const WorldReport report = RunWorld(WorldShape::ForSeed(seed), std::move(options));
    ASSERT_EQ(report.problem, "") << "seed " << seed;
    ASSERT_EQ(report.dead, 0u) << "seed " << seed;
    total.allocations += report.allocations;
    total.reads += report.reads;
    total.out_of_memory += report.out_of_memory;
    total.stats.blocks_given_back += report.stats.blocks_given_back;
    total.stats.blocks_harvested += report.stats.blocks_harvested;
  }
  EXPECT_GT(total.reads, 1000u);
  EXPECT_GT(total.out_of_memory, 10u);
  EXPECT_GT(total.stats.blocks_given_back, 1000u);
  EXPECT_GT(total.stats.blocks_harvested, 1000u);
}

TEST(PoolAllocator, MembersDieByChance_SurvivorsFindAllThatTheyLeaked) {
  WorldReport total;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SimOptions options;
    options.seed = seed;
    options.chaos = Chaos::ForSeed(seed, /*faults=*/true);
    const WorldShape shape = WorldShape::ForSeed(seed);
    options.chaos.longest_sleep = shape.lease * 3;
    const WorldReport report = RunWorld(shape, std::move(options));
    ASSERT_EQ(report.problem, "") << "seed " << seed;
    total.dead += report.dead;
    total.stats.blocks_swept += report.stats.blocks_swept;
  }
  EXPECT_GT(total.dead, 100u);
  EXPECT_GT(total.stats.blocks_swept, 100u);
}

TEST(PoolAllocatorCrash, EveryVerbOfShortLives_SurvivorsFindAllThatWasLeaked) {
  // Given two members that allocate blocks and extents, replace each other's, settle and leave.
  // When one of them dies, sleeps or loses its connection at each of their verbs in turn.
  // Expect no reader to find another block than was published, no block to be handed out twice, and no
  // chunk to be left.
  SweepReport report;
  for (uint64_t seed = 1; seed <= 12 && report.problem.empty(); ++seed) {
    WorldShape shape;
    shape.members = 2;
    shape.operations = 4;
    shape.operations_per_sync = 1;
    shape.slots = 2;
    shape.largest_bytes = seed % 2 == 0 ? 256 : 3 * 4096;
    SweepFaults(seed, shape, report);
  }
  EXPECT_EQ(report.problem, "");
  EXPECT_GT(report.crash_points, 3000u);
}

TEST(PoolAllocatorCrash, EveryVerbOfTheRepair_TheAdopterMayDieToo) {
  // Given a member that dies early, and two that adopt what it left.
  // When one of these has a fault at each of its verbs in turn.
  // Expect the other one, or a client that comes later, to finish the repair.
  SweepReport report;
  for (uint64_t seed = 1; seed <= 8 && report.problem.empty(); ++seed) {
    WorldShape shape;
    shape.members = 3;
    shape.operations = 3;
    shape.operations_per_sync = 1;
    shape.slots = 2;
    shape.chunks = 24;
    shape.largest_bytes = seed % 2 == 0 ? 256 : 3 * 4096;
    shape.first_dies_at = 150 + 40 * seed;
    SweepFaults(seed, shape, report);
  }
  EXPECT_EQ(report.problem, "");
  EXPECT_GT(report.crash_points, 3000u);
  EXPECT_GT(report.dead, report.crash_points);
}

TEST(PoolAllocatorCrash, LeaverHasHeardOfADeath_ItSweepsFirst) { EXPECT_EQ(LeaverHasHeardOfADeath(), ""); }
TEST(PoolAllocatorCrash, NewcomerTakesAChunkWithALeak_ItKnows) {
  EXPECT_EQ(NewcomerTakesAChunkWithALeak(), "");
}
TEST(PoolAllocatorCrash, ChunkLosesItsOwnerAfterTheFirstLook_TheSecondFindsIt) {
  EXPECT_EQ(ChunkLosesItsOwnerAfterTheFirstLook(), "");
}
TEST(PoolAllocatorCrash, SweeperReadsWhatADeadOneUnlinked_TheSweepWaits) {
  EXPECT_EQ(SweeperReadsWhatADeadOneUnlinked(), "");
}

TEST(PoolAllocator, OperationIsAbandonedInTheMiddleOfAClaim_TheClientMustNotLeave) {
  // Given a member that began to claim a chunk, and whose operation was destroyed before the answer came.
  // Expect that it neither allocates nor leaves; and that others repair it after the lease.
  Scenario scenario;
  Member& other = scenario.Enter();
  Member& member = scenario.Enter();
  {
    fabric::Op op(member.client(), fabric::OpKind::kUpdate);
    Task<fabric::FarAddr> task = member.allocator().Allocate(op, 64);
    task.Start();
    for (int i = 0; i < 4; ++i) scenario.world.fabric.Step();
    ASSERT_FALSE(task.done());
  }
  const auto allocate = [&](fabric::Op& op) { return member.allocator().Allocate(op, 64); };
  EXPECT_EQ(member.Try(allocate).error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(scenario.TryLeaveAll(member).error().code(), ErrorCode::kUnavailable);
  member.Vanish();
  scenario.WaitForFence({&other});
  scenario.Leave({&other});
  EXPECT_EQ(scenario.Problem(), "");
}

TEST(PoolAllocator, AnotherOperationFetchesMoreForLong_AllocateDoesNotGiveUp) {
  // Given an operation that claims a chunk, by a trip that takes longer than any operation waits for it.
  // When another operation of the same client needs a block of that size.
  // Expect that it gets one, and does not give up.
  Scenario scenario;
  Member& member = scenario.Enter();
  fabric::sim::SimFabric& fabric = scenario.world.fabric;
  {
    fabric::Op first_op(member.client(), fabric::OpKind::kUpdate);
    Task<fabric::FarAddr> first = member.allocator().Allocate(first_op, 64);
    first.Start();
    fabric.Hold(member.client().id(), fabric::NodeId{0}, std::chrono::seconds(1));
    fabric::Op second_op(member.client(), fabric::OpKind::kUpdate);
    Task<fabric::FarAddr> second = member.allocator().Allocate(second_op, 64);
    second.Start();
    while (!(first.done() && second.done()) && fabric.Step()) continue;
    ASSERT_TRUE(first.done() && second.done());
    const Result<fabric::FarAddr> one = first.TakeResult();
    const Result<fabric::FarAddr> other = second.TakeResult();
    ASSERT_TRUE(one.ok());
    ASSERT_TRUE(other.ok()) << other.error().ToString();
    EXPECT_NE(*one, *other);
    member.allocator().FreeUnpublished(*one, 64);
    member.allocator().FreeUnpublished(*other, 64);
  }
  scenario.Leave({&member});
  EXPECT_EQ(scenario.Problem(), "");
}

TEST(PoolAllocator, AnotherOperationHasFailedAndIsKept_AllocateSaysSo) {
  // Given an operation whose connection was lost while it claimed a chunk, and whose task still exists.
  // When another operation of the same client needs a block of that size.
  // Expect that it finds out that the connection is lost.
  Scenario scenario;
  Member& other = scenario.Enter();
  Member& member = scenario.Enter();
  fabric::sim::SimFabric& fabric = scenario.world.fabric;
  {
    fabric.set_fault({fabric.verbs_posted(), FaultKind::kLoseCompletion});
    fabric::Op first_op(member.client(), fabric::OpKind::kUpdate);
    Task<fabric::FarAddr> first = member.allocator().Allocate(first_op, 64);
    first.Start();
    while (!first.done() && fabric.Step()) continue;
    ASSERT_TRUE(first.done());
    const auto allocate = [&](fabric::Op& op) { return member.allocator().Allocate(op, 64); };
    EXPECT_EQ(member.Try(allocate).error().code(), ErrorCode::kUnavailable);
  }
  member.Vanish();
  scenario.WaitForFence({&other});
  scenario.Leave({&other});
  EXPECT_EQ(scenario.Problem(), "");
}

TEST(PoolAllocator, ManyClientsClaimAtOnce_EachChunkHasOneOwner) {
  // Given ten members that all need chunks of all classes at the same moment, and not enough for all.
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    WorldShape shape;
    shape.members = 10;
    shape.operations = 6;
    shape.operations_per_sync = 6;
    shape.chunks = 20;
    shape.slots = 64;
    SimOptions options;
    options.seed = seed;
    options.chaos = Chaos::ForSeed(seed, /*faults=*/false);
    const WorldReport report = RunWorld(shape, std::move(options));
    ASSERT_EQ(report.problem, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace farside::pool
