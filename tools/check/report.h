// What `farside check` says. Functions of data: they run nothing and print nothing.
//
// Everything but the seconds follows from the command line, so two runs of one command give the same bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/campaign.h"
#include "check/run.h"
#include "tools/check/check.h"

namespace farside::tools {

// A campaign, or one run that was replayed: a campaign of one history.
struct CheckResult {
  check::CampaignReport report;
  std::optional<double> seconds;          // of wall time; for people only
  std::optional<check::RunReport> shown;  // the run that was replayed, or the first violation run again
  std::optional<std::vector<std::string>> trace;  // its verbs, if asked for
};

// Counts a replayed run as a campaign of it alone.
check::CampaignReport AsCampaign(const check::RunName& name, const check::RunReport& run);

// The command that shows this run again, with every option that it depends on.
std::string ReplayCommand(const CheckCommand& command, const check::RunName& run);

// The numbers and, if there is a violation or an undecided run, what it is and how to see it again.
std::string CampaignText(const CheckCommand& command, const CheckResult& result);

// The history, the verdict and the trace of a replayed run.
std::string ReplayText(const CheckCommand& command, const CheckResult& result);

}  // namespace farside::tools
