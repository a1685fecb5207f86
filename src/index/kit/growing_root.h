// The root of a growing table (growth_layout.h) as it is made, and as traces name it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/kit/growth_layout.h"
#include "pool/client.h"

namespace farside::index {

// A root of version 1, with its first segment. The segment stays the caller's to free if it fails. `bytes`:
// of the root with what the engine keeps behind it, which begins as zeros.
Task<fabric::FarAddr> MakeGrowingRoot(fabric::Op& op, pool::Allocator& allocator, fabric::FarAddr segment,
                                      uint64_t bytes = sizeof(Root));

// "root state", "root segment 3", ...; empty if the address is in none of the roots.
std::string DescribeGrowingRoot(fabric::FarAddr at, std::span<const fabric::FarAddr> roots);

}  // namespace farside::index
