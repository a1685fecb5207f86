// Every planted bug of the reference table is caught by name, and without them nothing is.
#include <gtest/gtest.h>

#include <string>

#include "check/campaign.h"
#include "index/reference/mutants.h"
#include "index/reference/reference.h"
#include "tests/support/detector.h"

namespace farside::index::reference {
namespace {

constexpr uint64_t kMostSeeds = 1000;

// First with faults by chance, which is quick; then also with a fault at every verb.
check::CampaignReport Search(uint64_t seeds) {
  const auto engine = MakeReferenceEngine({});
  check::CampaignOptions options;
  options.seeds = seeds;
  options.crash = true;
  options.sweep = false;
  options.stop_at_first = true;
  check::CampaignReport report = check::RunCampaign(**engine, options);
  if (report.violations > 0) return report;
  options.seeds = std::min<uint64_t>(seeds, 20);
  options.sweep = true;
  return check::RunCampaign(**engine, options);
}

class ReferenceMutant : public testing::TestWithParam<MutantName> {};

TEST_P(ReferenceMutant, IsCaught) {
  // Given the reference table with one planted bug.
  // When up to 1000 seeds are searched, faults included.
  // Expect a violation, and the run that it names shows it again.
  const ScopedMutant mutant(GetParam());
  const check::CampaignReport report = Search(kMostSeeds);
  ASSERT_EQ(report.violations, 1u) << GetParam().text << " was not caught in " << report.seeds << " seeds";
  RecordProperty("seeds", static_cast<int>(report.seeds));
  RecordProperty("run", report.first_violation->run.ToString());

  const auto engine = MakeReferenceEngine({});
  const check::RunReport again = check::Replay(**engine, {}, report.first_violation->run);
  EXPECT_EQ(again.problem, report.first_violation->problem);
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceMutant, testing::ValuesIn(kAllMutants), NameOfBug);

TEST(ReferenceMutants, WithoutOneNothingIsCaught) {
  // Given the same build with no bug switched on.
  // When the search that catches the mutants runs.
  // Expect no violation.
  const check::CampaignReport report = Search(130);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": "
                                   << report.first_violation->problem;
}

}  // namespace
}  // namespace farside::index::reference
