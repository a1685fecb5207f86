#include "index/kit/zeroed_roots.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "farside/result.h"
#include "pool/memory/allocator.h"

namespace farside::index {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;

namespace {

constexpr uint64_t kZeroedByATrip = 1 << 20;

Task<FarAddr> MakeZeroed(Op& op, pool::Allocator& allocator, uint64_t bytes) {
  const FarAddr at = co_await allocator.Allocate(op, bytes);
  const std::vector<std::byte> zeros(std::min(bytes, kZeroedByATrip));
  for (uint64_t done = 0; done < bytes; done += zeros.size()) {
    const std::span<const std::byte> part(zeros.data(), std::min<uint64_t>(zeros.size(), bytes - done));
    co_await op.InOrder(Unreachable(Write(at + done, part)));
  }
  co_return at;
}

}  // namespace

Task<std::vector<FarAddr>> MakeZeroedRoots(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes,
                                           uint64_t bytes) {
  std::vector<FarAddr> roots;
  for (const NodeId node : nodes) {
    const Result<FarAddr> root = co_await MakeZeroed(op, pool.allocator(node), bytes).Outcome();
    if (root.ok()) {
      roots.push_back(*root);
      continue;
    }
    for (const FarAddr& made : roots) pool.allocator(made.node).FreeUnpublished(made, bytes);
    co_return root.error();
  }
  co_return std::move(roots);
}

}  // namespace farside::index
