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

// For runs with few keys: so leaves and inner nodes of one or two.
std::vector<OptionMap> ChimeEngine::stress_options() const {
  return {
      // A leaf for each key: splits, and a tree that grows with every one of them.
      {{"span", "1"}, {"neighbourhood", "1"}, {"fanout", "2"}, {"hotspot", "4096"}},
      // The same under one parent, so that leaves that become empty are merged.
      {{"span", "1"}, {"neighbourhood", "1"}, {"fanout", "8"}, {"hotspot", "4096"}},
      {{"span", "2"}, {"neighbourhood", "1"}, {"fanout", "8"}},
      // Moves inside of a leaf.
      {{"span", "4"}, {"neighbourhood", "2"}, {"fanout", "2"}, {"hotspot", "4096"}},
      // Some of both, and a client that remembers nothing.
      {{"span", "2"}, {"neighbourhood", "2"}, {"fanout", "3"}, {"cache", "0"}, {"hotspot", "0"}},
      // One leaf for all keys.
      {{"span", "8"}, {"neighbourhood", "4"}},
      // Keys and values in the leaves: splits and merges, and moves.
      {{"keys", "inline"}, {"span", "1"}, {"neighbourhood", "1"}, {"fanout", "8"}, {"hotspot", "4096"}},
      {{"keys", "inline"}, {"span", "4"}, {"neighbourhood", "2"}, {"fanout", "2"}, {"hotspot", "4096"}},
  };
}

Result<std::shared_ptr<Engine>> MakeChimeEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<ChimeEngine>(*parsed));
}

}  // namespace farside::index::chime
