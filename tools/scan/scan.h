// `farside scan`: the records of a table, one line each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/common/exit_code.h"
#include "tools/common/text.h"

namespace farside::tools {

struct ScanCommand {
  std::string url;
  std::string table;
  std::optional<std::string> from;
  std::optional<std::string> to;
  std::optional<std::string> prefix;
  std::optional<uint64_t> limit;
  Encoding encoding = Encoding::kPlain;
  bool json = false;
};

ExitCode Scan(const ScanCommand& command);

}  // namespace farside::tools
