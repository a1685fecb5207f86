// `farside demo`: Farside at work, in a few seconds and without any set-up.
#pragma once

#include <string>

#include "tools/common/exit_code.h"

namespace farside::tools {

struct DemoCommand {
  std::string program = "farside";  // as it was called, for the commands to try next
};

ExitCode Demo(const DemoCommand& command);

}  // namespace farside::tools
