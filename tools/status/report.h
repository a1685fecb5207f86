// What `farside status` says. Functions of data: they open nothing and print nothing.
#pragma once

#include <string>

#include "tools/status/status.h"

namespace farside::tools {

// Nodes, clients and tables, one line each, with a bound on their number so that they fit a screen.
std::string StatusText(const StatusCommand& command, const PoolStatus& status);

}  // namespace farside::tools
