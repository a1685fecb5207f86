// Engines that only find out whether there is room for a table.
#pragma once

#include <memory>
#include <string_view>

#include "farside/result.h"
#include "index/index.h"

namespace farside::tools {

// Like MakeEngine. Its Create allocates what an empty table takes, and writes nothing there; what it made is
// no table.
Result<std::shared_ptr<index::Engine>> MakeDryRunEngine(std::string_view name,
                                                        const index::OptionMap& options);

}  // namespace farside::tools
