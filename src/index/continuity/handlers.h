// The handlers of this table at memory nodes.
#pragma once

#include "fabric/service.h"

namespace farside::index::continuity {

void Serve(fabric::CallTable& calls);

}  // namespace farside::index::continuity
