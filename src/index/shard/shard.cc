#include "index/shard/shard.h"

#include <algorithm>

#include "index/kit/growing_root.h"
#include "index/shard/table.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;

namespace {

constexpr uint64_t kWrittenByATrip = 256 * 1024;

}  // namespace

uint64_t ShardEngine::empty_bytes() const { return sizeof(Root) + options_.shape.SegmentBytes(0); }

Task<std::vector<FarAddr>> ShardEngine::Create(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes) {
  std::vector<FarAddr> roots;
  std::vector<FarAddr> segments;
  for (const NodeId node : nodes) {
    pool::Allocator& allocator = pool.allocator(node);
    const Result<FarAddr> segment = co_await MakeFirstSegment(op, allocator).Outcome();
    Result<FarAddr> root = segment;
    if (segment.ok()) {
      segments.push_back(*segment);
      root = co_await MakeGrowingRoot(op, allocator, *segment).Outcome();
    }
    if (root.ok()) {
      roots.push_back(*root);
      continue;
    }
    for (const FarAddr& made : segments)
      pool.allocator(made.node).FreeUnpublished(made, options_.shape.SegmentBytes(0));
    for (const FarAddr& made : roots) pool.allocator(made.node).FreeUnpublished(made, sizeof(Root));
    co_return root.error();
  }
  co_return std::move(roots);
}

// Empty buckets of version 1, and free locks.
Task<FarAddr> ShardEngine::MakeFirstSegment(Op& op, pool::Allocator& allocator) {
  const Shape& shape = options_.shape;
  const uint64_t bytes = shape.SegmentBytes(0);
  const FarAddr segment = co_await allocator.Allocate(op, bytes);
  Line empty;
  empty.set_version(1);
  const uint64_t line_bytes = shape.units(1) * shape.unit_bytes();
  const std::vector<Line> lines(std::min(line_bytes, kWrittenByATrip) / sizeof(Line), empty);
  for (uint64_t done = 0; done < line_bytes; done += lines.size() * sizeof(Line)) {
    const uint64_t count = std::min(lines.size() * sizeof(Line), line_bytes - done);
    const std::span<const std::byte> part = std::as_bytes(std::span(lines)).first(count);
    co_await op.InOrder(Unreachable(Write(segment + done, part)));
  }
  const std::vector<std::byte> locks(pool::RoundUp(shape.SegmentLocks(0) * 8, pool::kLine));
  co_await op.InOrder(Unreachable(Write(segment + line_bytes, locks)));
  co_return segment;
}

std::unique_ptr<Index> ShardEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, roots);
}

std::string ShardEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  return DescribeGrowingRoot(at, roots);
}

}  // namespace farside::index::shard
