// Roots of tables that begin as zeros.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "pool/client.h"

namespace farside::index {

// A block of so many bytes, all of them zero, on each of the nodes. If it fails, nothing is left.
Task<std::vector<fabric::FarAddr>> MakeZeroedRoots(fabric::Op& op, pool::PoolClient& pool,
                                                   std::vector<fabric::NodeId> nodes, uint64_t bytes);

}  // namespace farside::index
