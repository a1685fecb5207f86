// The root of a growing table (growth_layout.h) as it is made, and as traces name it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/kit/growth_layout.h"
#include "pool/client.h"
#include "pool/region/layout.h"

namespace farside::index {

// What a new table has on each node.
struct NewGrowingTable {
  std::array<std::byte, pool::kLine> line;  // the first segment begins with this one again and again...
  uint64_t line_bytes = 0;                  // ...for so many bytes
  uint64_t zero_bytes = 0;                  // and ends with so many zeros
  uint64_t root_bytes = sizeof(Root);  // with what the engine keeps behind the root, which begins as zeros

  uint64_t segment_bytes() const { return line_bytes + zero_bytes; }
};

// The roots of version 1, each with its first segment. If it fails on one node, it leaves nothing on the
// others.
Task<std::vector<fabric::FarAddr>> MakeGrowingTable(fabric::Op& op, pool::PoolClient& pool,
                                                    std::vector<fabric::NodeId> nodes, NewGrowingTable table);

// "root state", "root segment 3", ...; empty if the address is in none of the roots.
std::string DescribeGrowingRoot(fabric::FarAddr at, std::span<const fabric::FarAddr> roots);

}  // namespace farside::index
