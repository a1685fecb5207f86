// `farside export`: writes the records of a table to a file; record_format.h has the format.
#pragma once

#include <string>

#include "tools/common/exit_code.h"

namespace farside::tools {

struct ExportCommand {
  std::string url;
  std::string table;
  std::string file = "-";  // stdout
  bool json = false;
};

ExitCode Export(const ExportCommand& command);

}  // namespace farside::tools
