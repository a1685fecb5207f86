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
using fabric::Order;
using fabric::Unreachable;
using fabric::Write;

Table::Table(const Options& options, pool::PoolClient& pool, const std::vector<FarAddr>& roots)
    : options_(options),
      pool_(pool),
      root_block_(roots.front()),
      cache_(options.cache_bytes),
      // Who reads whole leaves, for comparison, reads them for every key.
      hotspots_(options.leaf_read == LeafRead::kWhole ? 0 : options.hotspot_bytes) {
  for (const FarAddr& root : roots) nodes_.push_back(root.node);
}

RetryPolicy Table::RetryPolicySince(uint64_t catalogs) const {
  return RetryPolicy(pool_, nodes_.front(), options_.backoff, catalogs, kPinsPastADrop);
}

// ---- engine ------------------------------------------------------------------------------------------

namespace {

// How many leaves an empty table has, and how many inner nodes.
size_t FirstLeaves(const Shape& shape) { return shape.inline_keys ? 2 : 1; }
// INVARIANT chime/11: each half has a parent of its own, and the root is above them. Pivots of one parent would not do: they may
// be missing for some time (chime/7), and what they separate may be merged.
size_t FirstInners(const Shape& shape) { return shape.inline_keys && !Mutant(kMergedAcross) ? 3 : 1; }

// The i-th of these nodes on its level: its keys are from here on,
RawPivot FirstPivot(size_t i, NodePtr node) {
  if (i == 0) return {.prefix = 0, .ref = BoundRef::Short(0), .child = node};
  return {.prefix = kMiddle, .ref = BoundRef::Short(kPrefixBytes), .child = node};
}
// and up to where the next one begins, if there is one.
Header FirstHeader(uint32_t level, NodePtr next) {
  Header header{};
  header.info = NodeInfo::Of(level).word();
  header.fence_ref = BoundRef::Beyond().word();
  if (next.null()) return header;
  header.fence_prefix = FirstPivot(1, next).prefix;
  header.fence_ref = FirstPivot(1, next).ref.word();
  header.sibling = next.word();
  return header;
}

}  // namespace

uint64_t ChimeEngine::empty_bytes() const {
  const Shape& shape = options_.shape;
  return sizeof(RootBlock) + FirstInners(shape) * shape.inner_bytes() +
         FirstLeaves(shape) * shape.leaf_bytes();
}

// An inner node as root, with one leaf; with keys=inline a leaf for each half of the keys, and its parent. All on the first
// node: the others get their share as leaves are split.
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
  std::vector<uint64_t> sizes = {sizeof(RootBlock)};
  sizes.resize(sizes.size() + FirstInners(shape), shape.inner_bytes());
  sizes.resize(sizes.size() + FirstLeaves(shape), shape.leaf_bytes());
  std::vector<FarAddr> made;
  for (const uint64_t bytes : sizes) {
    const Result<FarAddr> at = co_await allocator.Allocate(op, bytes).Outcome();
    if (!at.ok()) {
      for (size_t i = 0; i < made.size(); ++i) allocator.FreeUnpublished(made[i], sizes[i]);
      co_return at.error();
    }
    made.push_back(*at);
  }

  const auto inner = [&](size_t i, uint32_t level) { return NodePtr::To(0, made[1 + i].offset, level); };
  const auto leaf = [&](size_t i) { return NodePtr::To(0, made[1 + FirstInners(shape) + i].offset, 0); };
  std::vector<InnerImage> inners(FirstInners(shape));  // the root is the first,
  std::vector<Leaf> leaves(FirstLeaves(shape));
  const bool with_parents = inners.size() > 1;  // and then come those of each leaf
  for (size_t i = 0; i < leaves.size(); ++i) {
    const bool is_last = i + 1 == leaves.size();
    leaves[i].header = FirstHeader(0, is_last ? NodePtr() : leaf(i + 1));
    inners[0].Set(shape, i, FirstPivot(i, with_parents ? inner(1 + i, 1) : leaf(i)));
    if (!with_parents) continue;
    inners[1 + i].header = FirstHeader(1, is_last ? NodePtr() : inner(2 + i, 1));
    inners[1 + i].Set(shape, 0, FirstPivot(i, leaf(i)));
  }
  const uint32_t top = with_parents ? 2 : 1;
  inners[0].header = FirstHeader(top, NodePtr());
  RootBlock root{};
  root.root = inner(0, top).word();

  fabric::Batch trip(op, Order::kInOrder);
  const auto add = [&](FarAddr at, std::span<const std::byte> bytes) {
    trip.Add(Unreachable(Write(at, bytes)));
  };
  for (size_t i = 0; i < leaves.size(); ++i) {
    const FarAddr at = made[1 + inners.size() + i];
    add(at, leaves[i].header_bytes());
    add(at + pool::kLine, leaves[i].lines(shape));
  }
  for (size_t i = 0; i < inners.size(); ++i) {
    add(made[1 + i], std::as_bytes(std::span(&inners[i].header, 1)));
    add(made[1 + i] + pool::kLine, inners[i].lines(shape));
  }
  add(made[0], std::as_bytes(std::span(&root, 1)));
  co_await trip;
  std::vector<FarAddr> roots;
  for (const NodeId node : nodes) roots.emplace_back(node, 0);
  roots.front() = made[0];
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
      // One leaf for all of them.
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
