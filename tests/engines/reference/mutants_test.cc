// Every planted bug of the reference table is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "index/reference/mutants.h"
#include "index/reference/reference.h"
#include "tests/engines/evacuation_scenarios.h"
#include "tests/support/detector.h"
#include "tests/support/script_search.h"

namespace farside::index::reference {
namespace {

constexpr uint64_t kMostSeeds = 1000;

std::string Search(const ScriptSearch& search) { return SearchScripts({*MakeReferenceEngine({})}, search); }

// With faults by chance, which is quick; then also with a fault at every verb.
std::vector<Detector> Detectors(uint64_t seeds) {
  return {
      {"evacuations",
       [=] { return Search({.seeds = std::min<uint64_t>(seeds, 100), .shape = kEvacuations}); }},
      {"a reader stops while its record moves",
       [] { return AReaderStopsWhileItsRecordMoves("reference", MakeReferenceEngine); }},
      {"scripts", [=] { return Search({.seeds = seeds}); }},
      {"a fault at every verb",
       [=] { return Search({.seeds = std::min<uint64_t>(seeds, 20), .sweep = true}); }},
  };
}

class ReferenceMutant : public testing::TestWithParam<MutantName> {};

TEST_P(ReferenceMutant, IsCaught) {
  // Given the reference table with one planted bug.
  // When up to 1000 seeds are searched, faults included.
  // Expect a violation, and the run that it names shows it again.
  ExpectCaught(GetParam(), Detectors(kMostSeeds));
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceMutant, testing::ValuesIn(kAllMutants), NameOfBug);

TEST(ReferenceMutants, WithoutOneNothingIsCaught) {
  // Given the same build with no bug switched on.
  // When the searches that catch the mutants run.
  // Expect that they catch nothing.
  for (const Detector& detector : Detectors(130)) EXPECT_EQ(detector.run(), "") << detector.name;
}

}  // namespace
}  // namespace farside::index::reference
