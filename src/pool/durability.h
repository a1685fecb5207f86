// How a client makes bytes of a durable pool survive a power cut of their node: a Call, answered when they
// do.
//
// A pool is durable if its superblock says so (Geometry::durable). WRITEs and atomics of clients are durable
// only after such a Call.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "fabric/service.h"
#include "farside/task.h"

namespace farside::pool {

inline constexpr fabric::CallId kMakeDurable{0xfffe, 1};

struct ByteRange {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Names the handler of kMakeDurable.
void ServeDurability(fabric::CallTable& calls);

// Makes the lines of these bytes of a node durable. Nothing is done, by no trip, if there are none.
Task<Done> MakeDurable(fabric::Op& op, fabric::NodeId node, std::vector<ByteRange> ranges);

}  // namespace farside::pool
