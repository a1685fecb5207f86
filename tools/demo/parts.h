// The parts of `farside demo`. Each prints its heading and what it has to show; what goes wrong is an error.
//
// Everything is counted or simulated, so that a demo tells the same story every time.
#pragma once

#include <string>
#include <string_view>

#include "farside/result.h"
#include "tools/common/exit_code.h"
#include "tools/common/terminal.h"

namespace farside::tools::demo {

std::string Heading(const Paint& paint, int number, std::string_view text);

// Operations on a table, one by one, with their round trips.
Status ShowTable(const Paint& paint, int number);
// A table that grows while clients insert.
Status ShowGrowth(const Paint& paint, int number);
// All engines on one workload, beside raw.
Status ShowEngines(const Paint& paint, int number);
// A client that dies while it holds a lock, and how the next one takes over.
Status ShowCrash(const Paint& paint, int number);

}  // namespace farside::tools::demo
