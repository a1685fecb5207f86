// The program: parses the command line and runs the command.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/common/exit_code.h"

namespace farside::tools {

// How the test binary plants bugs; see tools/mutants_main.cc.
struct MutantSwitch {
  std::vector<std::string_view> names;
  // Runs `command` with the named bug switched on.
  ExitCode (*run)(const std::string& name, const std::function<ExitCode()>& command);
};

// The exit code. `mutants` is null in the binary that people use.
int Farside(int argc, const char* const* argv, const MutantSwitch* mutants = nullptr);

}  // namespace farside::tools
