// The command line of farside_peers.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "bench/peers/campaign.h"
#include "bench/peers/line_up.h"

namespace farside::peers {

struct PeersCommand {
  CampaignOptions campaign;
  std::vector<SystemSpec> specs;
  std::string farside_program;  // that can `serve`
  std::string folder;           // for the chart and the JSON; empty: none are written
  bool json = false;            // instead of the table
  bool idle = false;            // instead of the campaign
  double idle_seconds = 10;
  size_t idle_connections = 100;
};

struct HelpText {
  std::string text;
};
struct UsageError {
  std::string why;
};

std::variant<PeersCommand, HelpText, UsageError> ParseOptions(int argc, const char* const* argv);

}  // namespace farside::peers
