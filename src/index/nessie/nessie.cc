#include "index/nessie/nessie.h"

#include <algorithm>
#include <utility>

#include "index/kit/growing_root.h"
#include "index/nessie/table.h"

namespace farside::index::nessie {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;

namespace {

constexpr uint64_t kWrittenByATrip = 256 * 1024;

}  // namespace

uint64_t NessieEngine::empty_bytes() const { return sizeof(TableRoot) + options_.shape.SegmentBytes(0); }

Task<std::vector<FarAddr>> NessieEngine::Create(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes) {
  std::vector<FarAddr> roots;
  std::vector<FarAddr> segments;
  for (const NodeId node : nodes) {
    pool::Allocator& allocator = pool.allocator(node);
    const Result<FarAddr> segment = co_await MakeFirstSegment(op, allocator).Outcome();
    Result<FarAddr> root = segment;
    if (segment.ok()) {
      segments.push_back(*segment);
      root = co_await MakeGrowingRoot(op, allocator, *segment, sizeof(TableRoot)).Outcome();
    }
    if (root.ok()) {
      roots.push_back(*root);
      continue;
    }
    for (const FarAddr& made : segments)
      pool.allocator(made.node).FreeUnpublished(made, options_.shape.SegmentBytes(0));
    for (const FarAddr& made : roots) pool.allocator(made.node).FreeUnpublished(made, sizeof(TableRoot));
    co_return root.error();
  }
  co_return std::move(roots);
}

// Empty slots.
Task<FarAddr> NessieEngine::MakeFirstSegment(Op& op, pool::Allocator& allocator) {
  const uint64_t bytes = options_.shape.SegmentBytes(0);
  const FarAddr segment = co_await allocator.Allocate(op, bytes);
  const std::vector<Word> words(std::min(bytes, kWrittenByATrip) / sizeof(Word), Word::FirstEmpty());
  for (uint64_t done = 0; done < bytes; done += words.size() * sizeof(Word)) {
    const uint64_t count = std::min(words.size() * sizeof(Word), bytes - done);
    const std::span<const std::byte> part = std::as_bytes(std::span(words)).first(count);
    co_await op.InOrder(Unreachable(Write(segment + done, part)));
  }
  co_return segment;
}

std::unique_ptr<Index> NessieEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, roots);
}

std::string NessieEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  return DescribeGrowingRoot(at, roots);
}

}  // namespace farside::index::nessie
