// A table as one client has it open, and the engine that makes tables.
#include "index/chime/chime.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "index/chime/mutants.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

Table::Table(const Options& options, pool::PoolClient& pool, const std::vector<FarAddr>& roots)
    : options_(options),
      pool_(pool),
      root_block_(roots.front()),
      cache_(options.cache_bytes),
      // Who reads whole leaves, for comparison, reads them for every key.
      hotspots_(options.leaf_read == LeafRead::kWhole ? 0 : options.hotspot_bytes) {
  for (const FarAddr& root : roots) nodes_.push_back(root.node);
}

Patience Table::PatienceSince(uint64_t catalogs) const {
  return Patience(pool_, nodes_.front(), options_.backoff, catalogs, kPinsPastADrop);
}

// ---- engine ------------------------------------------------------------------------------------------

uint64_t ChimeEngine::empty_bytes() const {
  return sizeof(RootBlock) + options_.shape.inner_bytes() + options_.shape.leaf_bytes();
}

// An inner node as root, with one leaf. All on the first node: the others get their share as leaves are split.
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
  const Shape& shape = options_.shape;
  pool::Allocator& allocator = pool.allocator(nodes.front());
  std::vector<std::pair<FarAddr, uint64_t>> made;
  for (const uint64_t bytes : {uint64_t{sizeof(RootBlock)}, shape.inner_bytes(), shape.leaf_bytes()}) {
    const Result<FarAddr> at = co_await allocator.Allocate(op, bytes).Outcome();
    if (!at.ok()) {
      for (const auto& [block, size] : made) allocator.FreeUnpublished(block, size);
      co_return at.error();
    }
    made.emplace_back(*at, bytes);
  }
  const FarAddr root_at = made[0].first;
  const FarAddr inner_at = made[1].first;
  const FarAddr leaf_at = made[2].first;
  Leaf leaf;
  leaf.header.info = NodeInfo::Of(0).word();
  leaf.header.fence_ref = BoundRef::Beyond().word();
  InnerImage inner;
  inner.header.info = NodeInfo::Of(1).word();
  inner.header.fence_ref = BoundRef::Beyond().word();
  inner.Set(shape, 0, {.prefix = 0, .ref = BoundRef::Short(0), .child = NodePtr::To(0, leaf_at.offset, 0)});
  RootBlock root{};
  root.root = NodePtr::To(0, inner_at.offset, 1).word();
  co_await op.InOrder(Unreachable(WriteObject(leaf_at, leaf.header)),
                      Unreachable(Write(leaf_at + pool::kLine, leaf.lines(shape))),
                      Unreachable(WriteObject(inner_at, inner.header)),
                      Unreachable(Write(inner_at + pool::kLine, inner.lines(shape))),
                      Unreachable(WriteObject(root_at, root)));
  std::vector<FarAddr> roots;
  for (const NodeId node : nodes) roots.emplace_back(node, 0);
  roots.front() = root_at;
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

// Few keys: so leaves and nodes of one or two.
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
      // As users have it.
      {{"span", "8"}, {"neighbourhood", "4"}},
  };
}

Result<std::shared_ptr<Engine>> MakeChimeEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<ChimeEngine>(*parsed));
}

}  // namespace farside::index::chime
