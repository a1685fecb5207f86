// Every planted bug of the nessie table is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check/workload.h"
#include "index/nessie/mutants.h"
#include "index/nessie/nessie.h"
#include "tests/engines/evacuation_scenarios.h"
#include "tests/engines/nessie/explored.h"
#include "tests/engines/nessie/full_pool_scenarios.h"
#include "tests/engines/nessie/scenarios.h"
#include "tests/engines/nessie/scenes.h"
#include "tests/support/detector.h"
#include "tests/support/sanitized.h"
#include "tests/support/script_search.h"

namespace farside::index::nessie {
namespace {

using check::WorkloadShape;

std::string RunScripts(uint64_t seeds, const WorkloadShape& shape) {
  std::vector<std::shared_ptr<Engine>> engines;
  for (const OptionMap& some : (*MakeNessieEngine({}))->stress_options())
    engines.push_back(*MakeNessieEngine(some));
  return SearchScripts(engines, {.seeds = seeds, .shape = shape});
}

Detector Explore(const std::string& name, const std::function<void(Explored&)>& make) {
  return {"explored: " + name, [make] {
            Explored explored;
            make(explored);
            return ProblemOf(explored.scenario);
          }};
}

void AddStops(std::vector<Detector>& detectors, const std::vector<Scene>& scenes, bool of_the_dead) {
  for (const Scene& scene : scenes) {
    if (scene.after_a_death != of_the_dead) continue;
    detectors.push_back({"one stops: " + scene.name, [scene] { return scene.OneStops(); }});
  }
}

// The quick ones first. What those catch that are moved by hand, or explored, depends on no seed.
std::vector<Detector> Detectors(uint64_t fewer = 1) {
  const auto long_scripts = WorkloadShape{.clients = 4, .operations = 40, .keys = 12};
  const std::vector<std::vector<Scene>> all = {EntryScenes(), MigrationScenes(), GrowthScenes()};
  std::vector<Detector> detectors = {
      {"a cursor meets a migration", CursorMeetsAMigration},
      {"a cursor meets an error", CursorMeetsAnError},
      {"keys move inside a READ", [=] { return KeysMoveInsideAReadOfACursor(20000 / fewer); }},
      {"an entry is gone at its commit", EntryIsGoneAtItsCommit},
      {"memory comes back", MemoryComesBack},
      {"a client dies with a spare line", DiesWithASpareLine},
      {"a slow client meets a spare line", SlowClientMeetsASpareLine},
      {"two remove a claim", TwoRemoveAClaim},
      {"evacuations", [=] { return RunScripts(100 / fewer, kEvacuations); }},
      {"a reader stops while its record moves",
       [] { return AReaderStopsWhileItsRecordMoves("nessie", MakeNessieEngine); }},
      {"short scripts", [=] { return RunScripts(60 / fewer, {}); }},
      {"long scripts", [=] { return RunScripts(60 / fewer, long_scripts); }},
      Explore("a key goes and comes back", KeyGoesAndComesBack),
      Explore("two put a key where a slot comes free", TwoPutAKeyWhereASlotComesFree),
      Explore("a key is made anew in its other slot", KeyIsMadeAnewInItsOtherSlot)};
  if (fewer == 1) {  // scenarios_test.cc and exhaustive_test.cc have them without bugs
    for (const bool of_the_dead : {true, false}) {
      for (const std::vector<Scene>& scenes : all) AddStops(detectors, scenes, of_the_dead);
    }
  }
  for (const std::vector<Scene>& scenes : all) {
    for (const Scene& scene : scenes)
      detectors.push_back({"by chance: " + scene.name, [=] { return scene.ByChance(40 / fewer); }});
  }
  return detectors;
}

class NessieMutant : public testing::TestWithParam<MutantName> {};

TEST_P(NessieMutant, IsCaught) {
  // Given the nessie table with one planted bug.
  // When the searches and scenarios run, one after the other.
  // Expect that one of them catches it.
  ExpectCaught(GetParam(), Detectors());
}

INSTANTIATE_TEST_SUITE_P(All, NessieMutant, testing::ValuesIn(kAllMutants), NameOfBug);

TEST(NessieMutants, WithoutOneNothingIsCaught) {
  // Given the same build with no bug switched on.
  // When the searches and scenarios that catch the mutants run.
  // Expect that they catch nothing.
  for (const Detector& detector : Detectors(std::max<uint64_t>(kFewer, 4)))
    EXPECT_EQ(detector.run(), "") << detector.name;
}

}  // namespace
}  // namespace farside::index::nessie
