// What operations of the sephash table fail with.
#pragma once

#include <string_view>

#include "fabric/address.h"
#include "farside/result.h"

namespace farside::index::sephash {

Error DamagedSegment(fabric::FarAddr at, std::string_view what);
Error DamagedMain(fabric::FarAddr at, std::string_view what);
Error DamagedRoot(fabric::FarAddr at, std::string_view what);
// Other clients kept coming between the lines of the READs, or a segment stayed full.
Error Outrun();

}  // namespace farside::index::sephash
