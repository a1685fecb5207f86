#include "index/chime/chime.h"

#include <fmt/format.h>

#include "index/chime/empty_tree.h"
#include "index/chime/table.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;

uint64_t ChimeEngine::empty_bytes() const { return EmptyTree(options_.shape).bytes(); }

// On the first node; the other nodes get their share as leaves are split.
Task<std::vector<FarAddr>> ChimeEngine::Create(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes) {
  if (nodes.size() > kMostNodes) {
    co_return Error(
        ErrorCode::kInvalidArgument,
        fmt::format("the pool has {} nodes; a chime table is on {} at most", nodes.size(), kMostNodes));
  }
  for (const NodeId node : nodes) {
    if (pool.member(node).geometry().region_bytes / pool::kLine > LineBits::kMax) {
      co_return Error(
          ErrorCode::kInvalidArgument,
          fmt::format("node {} of the pool lends out more than 4 TiB, which a chime table cannot address",
                      fabric::Index(node)));
    }
  }
  EmptyTree tree(options_.shape);
  const FarAddr root_block = co_await tree.Make(op, pool.allocator(nodes.front()));
  std::vector<FarAddr> roots;
  for (const NodeId node : nodes) roots.emplace_back(node, 0);
  roots.front() = root_block;
  co_return std::move(roots);
}

std::unique_ptr<Index> ChimeEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, roots);
}

std::string ChimeEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  if (roots.empty() || at.node != roots.front().node) return "";
  const bool inside =
      at.offset >= roots.front().offset && at.offset < roots.front().offset + sizeof(RootBlock);
  return inside ? "root" : "";
}

}  // namespace farside::index::chime
