// What commands say about nodes of a pool that cannot be reached.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "pool/region/open.h"
#include "tools/common/exit_code.h"

namespace farside::tools {

// "node 1 (10.0.0.8:7700) is missing: no connection to 10.0.0.8:7700: ..."
std::string MissingText(const pool::MissingNode& node);

// For a command that has shown what the other nodes know: one line on stderr, and the exit code for it.
// kSuccess, and no line, if none is missing.
ExitCode ReportMissing(std::string_view command, std::span<const pool::MissingNode> missing);

// For a command that needs all of them: why it does not begin.
Status NeedAllNodes(std::span<const pool::MissingNode> missing);

}  // namespace farside::tools
