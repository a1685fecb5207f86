// The nessie table under clients that die at exact places: in the middle of changes, migrations, splits and
// growth.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "check/campaign.h"
#include "tests/engines/nessie/stories.h"
#include "tests/support/sanitized.h"

namespace farside::index::nessie {
namespace {

class NessieCrash : public testing::TestWithParam<Story> {};
INSTANTIATE_TEST_SUITE_P(All, NessieCrash, testing::ValuesIn(Stories()), NameOfStory);
INSTANTIATE_TEST_SUITE_P(More, NessieCrash,
                         testing::Values(UpdateInUnsplitSlot(), InsertIntoUnsplitSlot(), UpdateOfLargeItem()),
                         NameOfStory);

TEST_P(NessieCrash, ClientDiesAtEveryVerb_OthersFinishAndNothingIsLost) {
  // Given a client in the middle of a change, a migration, a split, a sweep or growth, and others that know
  // the table or come later. When it dies, at every verb and in every way. Expect that the others change and
  // read every key, that the history can be explained, and that nothing is leaked when the dead one is
  // adopted.
  EXPECT_EQ(DiesInTheMiddle(GetParam()), "");
}

TEST(NessieCrashes, EveryVerbOfEveryShortScript_SurvivorsGoOn) {
  // Given scripts of two or three clients, and tables that pass through everything. When each of their verbs
  // in turn is the place of each kind of fault. Expect every history to be linearizable, and every table to
  // be whole at the end.
  std::vector<std::shared_ptr<Engine>> engines;
  std::vector<Engine*> subjects;
  for (const OptionMap& options : (*MakeNessieEngine({}))->stress_options()) {
    engines.push_back(*MakeNessieEngine(options));
    subjects.push_back(engines.back().get());
  }
  check::CampaignOptions options;
  options.seeds = 4 / std::min<uint64_t>(kFewer, 4);
  options.crash = true;
  const check::CampaignReport report = check::RunCampaign(check::Subjects(subjects), options);
  EXPECT_EQ(report.undecided, 0u);
  EXPECT_EQ(report.violations, 0u) << report.first_violation->run.ToString() << ": "
                                   << report.first_violation->problem;
  EXPECT_GT(report.crash_points, options.seeds * 200);
}

}  // namespace
}  // namespace farside::index::nessie
