// What this binary was built from.
#pragma once

#include <string_view>

namespace farside::tools {

// "0.1.0"
std::string_view Version();

// The short hash of the commit, or "unknown" when built outside a git repository.
std::string_view Commit();

}  // namespace farside::tools
