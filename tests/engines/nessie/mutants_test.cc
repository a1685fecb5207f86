// Every planted bug of the nessie table is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "check/campaign.h"
#include "index/nessie/mutants.h"
#include "index/nessie/nessie.h"
#include "tests/engines/nessie/explored.h"
#include "tests/engines/nessie/scenarios.h"
#include "tests/engines/nessie/scenes.h"
#include "tests/support/detector.h"
#include "tests/support/sanitized.h"

namespace farside::index::nessie {
namespace {

using check::WorkloadShape;

// Runs with faults by chance, and without; the stress options take turns from seed to seed.
std::string RunScripts(uint64_t seeds, const WorkloadShape& shape) {
  std::vector<std::shared_ptr<Engine>> engines;
  std::vector<Engine*> subjects;
  for (const OptionMap& some : (*MakeNessieEngine({}))->stress_options()) {
    engines.push_back(*MakeNessieEngine(some));
    subjects.push_back(engines.back().get());
  }
  check::CampaignOptions campaign;
  campaign.seeds = seeds;
  campaign.crash = true;
  campaign.sweep = false;
  campaign.shape = shape;
  campaign.stop_at_first = true;
  const check::CampaignReport report = check::RunCampaign(check::Subjects(subjects), campaign);
  if (report.violations == 0)
    return report.undecided == 0 ? "" : "undecided: " + report.first_undecided->problem;
  // The run that it names shows it again.
  const check::RunReport again =
      check::Replay(check::Subjects(subjects), campaign, report.first_violation->run);
  EXPECT_EQ(again.problem, report.first_violation->problem);
  return "run " + report.first_violation->run.ToString() + ": " + again.problem;
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
  const std::vector<std::vector<Scene>> all = {EntryScenes(), MigrationScenes(), GrowthScenes()};
  std::vector<Detector> detectors = {
      {"a cursor meets a migration", CursorMeetsAMigration},
      {"memory comes back", MemoryComesBack},
      {"short scripts", [=] { return RunScripts(60 / fewer, {}); }},
      Explore("a key goes and comes back", KeyGoesAndComesBack),
      Explore("a key is made anew in its other slot", KeyIsMadeAnewInItsOtherSlot)};
  if (fewer == 1) {  // scenarios_test.cc and exhaustive_test.cc have them without bugs
    for (const std::vector<Scene>& scenes : all) AddStops(detectors, scenes, /*of_the_dead=*/false);
    detectors.push_back(Explore("two put a key whose slot comes free", TwoPutAKeyWhereASlotComesFree));
    for (const std::vector<Scene>& scenes : all) AddStops(detectors, scenes, /*of_the_dead=*/true);
  }
  for (const std::vector<Scene>& scenes : all) {
    for (const Scene& scene : scenes)
      detectors.push_back({"by chance: " + scene.name, [=] { return scene.ByChance(40 / fewer); }});
  }
  const auto long_scripts = WorkloadShape{.clients = 4, .operations = 40, .keys = 12};
  detectors.push_back({"long scripts", [=] { return RunScripts(60 / fewer, long_scripts); }});
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
