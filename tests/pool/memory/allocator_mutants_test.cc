// Every planted bug of the allocator is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "pool/mutants.h"
#include "tests/pool/memory/allocator_scenarios.h"
#include "tests/pool/memory/allocator_world.h"
#include "tests/support/detector.h"

namespace farside::pool {
namespace {

using fabric::sim::Chaos;
using fabric::sim::SimOptions;

constexpr uint64_t kMostSeeds = 2000;

constexpr std::array kAllocatorMutants = {
    kReuseAtOnce,    kSkipAdoption,    kStampTooEarly,       kSettledTooEarly,
    kHarvestTooMuch, kExtentHeadFirst, kSweepAtOnce,         kSweepUnderReaders,
    kLeaveUnswept,   kTakeBlindly,     kReleaseSlotTooEarly,
};

struct Search {
  uint64_t seeds = 0;
  std::string problem;
};

// Every seed without and with members that die.
Search SearchSeeds(uint64_t most) {
  Search search;
  while (search.problem.empty() && search.seeds < most) {
    ++search.seeds;
    for (bool faults : {false, true}) {
      SimOptions options;
      options.seed = search.seeds;
      options.chaos = Chaos::ForSeed(search.seeds, faults);
      const WorldShape shape = WorldShape::ForSeed(search.seeds);
      options.chaos.longest_sleep = shape.lease * 3;
      search.problem = RunWorld(shape, std::move(options)).problem;
      if (!search.problem.empty()) break;
    }
  }
  return search;
}

std::string PlayScenarios() {
  for (auto* scenario : {LeaverHasHeardOfADeath, NewcomerTakesAChunkWithALeak,
                         ChunkLosesItsOwnerAfterTheFirstLook, SweeperReadsWhatADeadOneUnlinked}) {
    const std::string problem = scenario();
    if (!problem.empty()) return problem;
  }
  return "";
}

class AllocatorMutant : public testing::TestWithParam<MutantName> {};

TEST_P(AllocatorMutant, IsCaught) {
  // Given the allocator with one planted bug.
  // When the scenarios are played, and then up to 2000 seeds are searched, faults included.
  // Expect a problem.
  const ScopedMutant mutant(GetParam());
  std::string problem = PlayScenarios();
  if (problem.empty()) {
    const Search search = SearchSeeds(kMostSeeds);
    RecordProperty("seeds", static_cast<int>(search.seeds));
    problem = search.problem;
  }
  EXPECT_NE(problem, "") << GetParam().text << " was not caught";
  RecordProperty("problem", problem);
}

INSTANTIATE_TEST_SUITE_P(All, AllocatorMutant, testing::ValuesIn(kAllocatorMutants), NameOfBug);

TEST(AllocatorMutants, WithoutOneNothingIsCaught) {
  EXPECT_EQ(PlayScenarios(), "");
  const Search search = SearchSeeds(300);
  EXPECT_EQ(search.problem, "") << "seed " << search.seeds;
}

}  // namespace
}  // namespace farside::pool
