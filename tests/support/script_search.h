// Scripts of random operations that hunt planted bugs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "check/campaign.h"
#include "index/index.h"

namespace farside {

struct ScriptSearch {
  uint64_t seeds = 0;
  check::WorkloadShape shape = {};
  uint64_t first_seed = 1;
  bool sweep = false;  // also a fault at every single verb
};

// Few keys, whose records are moved again and again.
inline constexpr check::WorkloadShape kEvacuations{
    .clients = 3, .operations = 12, .keys = 2, .evacuates = true};

// Runs with faults by chance, and without; the engines take turns from seed to seed. What was found, or
// nothing.
inline std::string SearchScripts(const std::vector<std::shared_ptr<index::Engine>>& engines,
                                 const ScriptSearch& search) {
  std::vector<index::Engine*> subjects;
  for (const std::shared_ptr<index::Engine>& engine : engines) subjects.push_back(engine.get());
  check::CampaignOptions campaign;
  campaign.seeds = search.seeds;
  campaign.first_seed = search.first_seed;
  campaign.crash = true;
  campaign.sweep = search.sweep;
  campaign.shape = search.shape;
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

}  // namespace farside
