// How `farside` ends. Scripts rely on these numbers.
#pragma once

namespace farside::tools {

enum ExitCode : int {
  kSuccess = 0,
  kDoesNotHold = 1,  // a check that it ran does not hold, or could not be decided
  kWrongUsage = 2,
  kCouldNotRun = 3,
};

}  // namespace farside::tools
