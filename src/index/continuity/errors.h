// What operations of the continuity table fail with.
#pragma once

#include "fabric/address.h"
#include "farside/result.h"

namespace farside::index::continuity {

Error DamagedRoot(fabric::FarAddr root);
Error DamagedPair(fabric::FarAddr pair);
// Handlers kept changing the pair under the READs, or one does not end.
Error Contended();
// Another operation of this client brings the memory for a larger table.
Error Grows();
// The table grew again and again under the operation.
Error Outgrown();

}  // namespace farside::index::continuity
