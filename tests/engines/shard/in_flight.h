// Many operations in flight on shard tables.
#pragma once

#include <string>

#include "tests/engines/shard/world.h"
#include "tests/support/in_flight.h"

namespace farside::index::shard {

// With many seeds, all shapes, and with and without a death. The first problem, or nothing.
std::string ManyInFlightOften(uint64_t seeds);

}  // namespace farside::index::shard
