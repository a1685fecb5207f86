// The catalog of a pool as it lies there, for commands that look at pools which may be damaged.
#pragma once

#include <vector>

#include "fabric/op.h"
#include "farside/task.h"
#include "pool/catalog/catalog.h"
#include "pool/region/layout.h"

namespace farside::tools {

// The live tables whose entries can be read, on all nodes that have a geometry; `complete` becomes false if
// there are others. Needs no registration.
Task<std::vector<pool::TableInfo>> ReadTables(fabric::Op& op, std::vector<pool::Geometry> geometries,
                                              bool& complete);

}  // namespace farside::tools
