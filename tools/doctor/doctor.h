// `farside doctor`: what this machine can do, and what to change so that it can do more.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/common/exit_code.h"
#include "tools/common/machine.h"

namespace farside::tools {

struct DoctorCommand {
  bool json = false;
};

struct Backend {
  std::string name;
  bool built = false;
  bool usable = false;  // it was tried just now
  std::string why;
};

enum class Severity : uint8_t {
  kOk,
  kNote,     // nothing is wrong, but something to know
  kWarning,  // something will be slow or fail
};
std::string_view Name(Severity severity);

struct Diagnosis {
  std::string what;
  Severity severity = Severity::kOk;
  std::string fix = {};  // what to do; empty if there is nothing to do
};

struct DoctorReport {
  std::vector<Backend> backends;
  std::vector<Diagnosis> findings;
};

// Puts a small table on each backend that is built in.
std::vector<Backend> TryBackends();

// What the facts mean for Farside.
std::vector<Diagnosis> Judge(const Machine& machine);

ExitCode Doctor(const DoctorCommand& command);

}  // namespace farside::tools
