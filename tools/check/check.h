// `farside check`: searches simulated runs of an engine for histories that are not linearizable.
#pragma once

#include <optional>
#include <string>

#include "check/campaign.h"
#include "index/index.h"
#include "tools/common/exit_code.h"

namespace farside::tools {

struct CheckCommand {
  std::string program = "farside";  // as it was called, for the replay command
  std::string engine;
  index::OptionMap options;
  check::CampaignOptions campaign;
  std::optional<check::RunName> replay;  // this run alone, instead of a campaign
  bool trace = false;
  bool json = false;
  std::string mutant;  // the planted bug that is switched on; empty but in the test binary
};

ExitCode Check(const CheckCommand& command);

}  // namespace farside::tools
