// The planted bugs of membership, locks and the catalog are caught by name, and without them nothing is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "pool/mutants.h"
#include "tests/pool/catalog/catalog_run.h"
#include "tests/pool/catalog/tables_run.h"
#include "tests/pool/client_run.h"
#include "tests/pool/client_scenarios.h"
#include "tests/pool/members/lock_run.h"
#include "tests/pool/members/sync_listener_run.h"

namespace farside::pool {
namespace {

// The first problem in so many seeds, with the seed; empty if there is none.
std::string Search(uint64_t seeds, const std::function<std::string(uint64_t)>& run) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::string problem = run(seed);
    if (!problem.empty()) return "seed " + std::to_string(seed) + ": " + problem;
  }
  return "";
}

std::string LocksWithFaults(uint64_t seed) {
  uint64_t faults = 0;
  const auto run = [](const fabric::sim::SimOptions& options) { return RunLocks(options, 2, 2); };
  return ForEveryFault(PoolChaos(seed, /*faults=*/false), run, faults);
}

std::string CatalogWithoutFaults(uint64_t seed) {
  return RunCatalog(PoolChaos(seed, /*faults=*/false), SomeScripts(seed, 3, 5)).problem;
}

std::string PinnedReaders(uint64_t seed) { return RunPinned(PoolChaos(seed, /*faults=*/false)).problem; }

std::string TablesWithFaults(uint64_t seed) { return RunTables(PoolChaos(seed, /*faults=*/true), 3).problem; }

// The seed says which verb of the run is late, by less than a lease.
std::string ListenersWithALateVerb(uint64_t seed, bool ordered_reads) {
  fabric::sim::SimOptions options = PoolChaos(1 + seed % 7, /*faults=*/false);
  options.chaos.longest_sleep = kTestLease / 2;
  options.fault = fabric::sim::Fault{.verb = seed, .kind = fabric::sim::FaultKind::kSleepBefore};
  return RunSyncListeners(options, ordered_reads).problem;
}

TEST(PoolMutant, ListenerReadsBeforeTheEpoch_IsCaught) {
  // Given syncs that READ what tables want to learn before they READ the epoch.
  // Expect that an operation acts on what is out of force, although it knows the epoch; and without the bug,
  // none does.
  const auto listeners = [](uint64_t seed) { return ListenersWithALateVerb(seed, /*ordered_reads=*/true); };
  EXPECT_EQ(Search(700, listeners), "");
  const ScopedMutant mutant(kRootBeforeEpoch);
  EXPECT_THAT(Search(700, listeners), testing::HasSubstr("out of force"));
}

TEST(PoolMutant, ListenerReadsInAnyOrder_IsCaught) {
  // Given a fabric that does not order READs, and syncs that READ the epoch and what tables want to learn by
  // one trip.
  // Expect that an operation acts on what is out of force; and without the bug, none does.
  const auto listeners = [](uint64_t seed) { return ListenersWithALateVerb(seed, /*ordered_reads=*/false); };
  EXPECT_EQ(Search(700, listeners), "");
  const ScopedMutant mutant(kLinesInAnyOrder);
  EXPECT_THAT(Search(700, listeners), testing::HasSubstr("out of force"));
}

TEST(PoolMutant, NoFenceBeforeTakeover_IsCaught) {
  // Given clients that declare others dead without cutting them off.
  // When each verb of a client's turn is the place of each fault.
  // Expect that a late verb of a client that only slept is seen under the lock of another.
  const ScopedMutant mutant(kSlotBeforeFence);
  EXPECT_NE(Search(20, LocksWithFaults), "");
}

TEST(PoolMutant, CatalogRace_IsCaught) {
  // Given clients that change the catalog without its lock.
  // Expect a name that was created twice, or a create that was undone.
  const ScopedMutant mutant(kCatalogWithoutLock);
  EXPECT_NE(Search(100, CatalogWithoutFaults), "");
}

TEST(PoolMutant, EpochPublishedTooEarly_IsCaught) {
  // Given clients that publish the newest epoch they know, although an older operation is in flight.
  // Expect that a reader meets memory that was used again.
  const ScopedMutant mutant(kPublishTooEarly);
  EXPECT_THAT(Search(100, PinnedReaders), testing::HasSubstr("used again"));
}

TEST(PoolMutant, BlockReusedAtOnce_IsCaught) {
  // Given clients that give back what they have unlinked without waiting for any client.
  // Expect that a reader meets memory that was used again.
  const ScopedMutant mutant(kReuseAtOnce);
  EXPECT_THAT(Search(100, PinnedReaders), testing::HasSubstr("used again"));
}

TEST(PoolMutant, LostAdoption_IsCaught) {
  // Given clients that release the slots of dead ones without taking over their memory.
  // Expect fsck to find chunks whose owner is no client any more, or blocks that no client reaches.
  const ScopedMutant mutant(kSkipAdoption);
  EXPECT_NE(Search(20, TablesWithFaults), "");
}

TEST(PoolMutant, WalkWithoutSignsOfLife_IsCaught) {
  const ScopedMutant mutant(kWalkSilently);
  EXPECT_EQ(AWalkTakesLongerThanALease(), "the survivor is fenced");
}

TEST(PoolMutant, DetachedVerbOutlivesItsEpoch_IsCaught) {
  const ScopedMutant mutant(kForgetDetached);
  EXPECT_EQ(AVerbWithoutAWaiterOutlivesItsOperation(),
            "memory is used again under a verb that is on its way");
}

TEST(PoolMutant, LeavesWithVerbsInFlight_IsCaught) {
  const ScopedMutant mutant(kLeavesInFlight);
  EXPECT_EQ(AClientLeavesWithAVerbOnItsWay(), "a verb can land after its client has left");
}

TEST(PoolMutant, EpochWaitsForAllDetachedVerbs_IsCaught) {
  const ScopedMutant mutant(kAwaitAllDetached);
  EXPECT_EQ(AVerbWithoutAWaiterIsAlwaysOnItsWay(), "the epoch is never published");
}

TEST(PoolMutant, EvacuatedChunkReleasedInGrace_IsCaught) {
  const ScopedMutant mutant(kReleaseInGrace);
  EXPECT_EQ(AReaderIsAtABlockThatIsEvacuated(), "memory is used again under an operation");
}

TEST(PoolMutant, NewcomerReleasesASlotBeforeAllKnow_IsCaught) {
  const ScopedMutant mutant(kReleaseSlotUnannounced);
  EXPECT_EQ(LeaverHasNotHeardOfTheDeadWhenANewcomerComes(), "a block is lost");
}

TEST(PoolMutant, NewcomerReleasesTheLastDeadSlot_IsCaught) {
  const ScopedMutant mutant(kReleaseLastDeadSlot);
  EXPECT_EQ(OnlyOneIsDeadAndHasLeftMemory(), "a block is lost");
}

TEST(PoolMutants, WithoutOneNothingIsCaught) {
  EXPECT_EQ(AWalkTakesLongerThanALease(), "");
  EXPECT_EQ(LeaverHasNotHeardOfTheDeadWhenANewcomerComes(), "");
  EXPECT_EQ(OnlyOneIsDeadAndHasLeftMemory(), "");
  EXPECT_EQ(AVerbWithoutAWaiterOutlivesItsOperation(), "");
  EXPECT_EQ(AReaderIsAtABlockThatIsEvacuated(), "");
  EXPECT_EQ(Search(20, TablesWithFaults), "");
  EXPECT_EQ(Search(20, LocksWithFaults), "");
  EXPECT_EQ(Search(100, CatalogWithoutFaults), "");
  EXPECT_EQ(Search(100, PinnedReaders), "");
}

}  // namespace
}  // namespace farside::pool
