// `farside import`: puts the records of a file into a table; record_format.h has the format.
#pragma once

#include <string>

#include "index/index.h"
#include "tools/common/exit_code.h"

namespace farside::tools {

struct ImportCommand {
  std::string url;
  std::string table;
  std::string file = "-";  // stdin
  bool create = false;
  std::string engine;
  index::OptionMap options;
  bool json = false;
};

ExitCode Import(const ImportCommand& command);

}  // namespace farside::tools
