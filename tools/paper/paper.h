// `farside paper`: what the papers report against what we measure.
#pragma once

#include <cstdint>
#include <string>

#include "tools/common/exit_code.h"
#include "tools/common/terminal.h"
#include "tools/paper/experiment.h"

namespace farside::tools {

struct PaperCommand {
  std::string name;  // of an experiment, or "list"
  uint64_t percent = 100;
  bool full = false;
  bool json = false;
};

ExitCode Paper(const PaperCommand& command);

// The table that people read, with ticks, and plots of what is drawn in ASCII or more.
std::string PaperText(const paper::Experiment& experiment, const paper::Report& report, const Paint& paint,
                      bool unicode);

}  // namespace farside::tools
