#include "tools/common/version.h"

#include "farside_version.h"

namespace farside::tools {

std::string_view Version() { return kVersion; }
std::string_view Commit() { return kCommit; }

}  // namespace farside::tools
