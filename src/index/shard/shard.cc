#include "index/shard/shard.h"

#include <array>
#include <bit>
#include <utility>

#include "index/kit/growing_root.h"
#include "index/shard/table.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;

uint64_t ShardEngine::empty_bytes() const { return sizeof(Root) + options_.shape.SegmentBytes(0); }

// Empty buckets of version 1, and free locks.
Task<std::vector<FarAddr>> ShardEngine::Create(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes) {
  const Shape& shape = options_.shape;
  Line empty;
  empty.set_version(1);
  const NewGrowingTable table{.line = std::bit_cast<std::array<std::byte, pool::kLine>>(empty),
                              .line_bytes = shape.units(1) * shape.unit_bytes(),
                              .zero_bytes = pool::RoundUp(shape.SegmentLocks(0) * 8, pool::kLine)};
  return MakeGrowingTable(op, pool, std::move(nodes), table);
}

std::unique_ptr<Index> ShardEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, roots);
}

std::string ShardEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  return DescribeGrowingRoot(at, roots);
}

}  // namespace farside::index::shard
