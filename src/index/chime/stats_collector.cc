#include "index/chime/stats_collector.h"

#include <algorithm>
#include <memory>

#include "index/chime/circle.h"
#include "index/chime/errors.h"

namespace farside::index::chime {

using fabric::Op;

namespace {

double ShareOf(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(whole, 1));
}

}  // namespace

Task<TableStats> StatsCollector::Try(Op& op) {
  TableStats stats;
  Counts counts;
  stats.index_bytes = sizeof(RootBlock);
  co_await CountInnerNodes(op, counts);
  co_await CountLeaves(op, counts, stats);
  const Shape& shape = table_.shape();
  stats.slots = counts.leaves * shape.span;
  stats.index_bytes += counts.inner_nodes * shape.inner_bytes() + counts.leaves * shape.leaf_bytes();
  stats.client_bytes = inner_nodes_.bytes() + hotspots_.bytes() + bounds_.bytes();
  AddDetails(counts, stats);
  co_return stats;
}

Task<Done> StatsCollector::CountInnerNodes(Op& op, Counts& counts) {
  co_await root_.Read(op);
  counts.levels = root_.node().level() + 1;
  for (uint32_t level = root_.node().level(); level > 0; --level) {
    Circle circle;
    NodePtr at = co_await locator_.Leftmost(op, level);
    for (; !at.null(); ++counts.inner_nodes) {
      if (circle.Closes(at)) co_return Damaged(at, kInCircles);
      const std::shared_ptr<const Inner> node = co_await inner_nodes_.Load(op, at);
      at = node->sibling();
    }
  }
  co_return Done{};
}

Task<Done> StatsCollector::CountLeaves(Op& op, Counts& counts, TableStats& stats) {
  const Shape& shape = table_.shape();
  Circle circle;
  NodePtr at = co_await locator_.Leftmost(op, 0);
  for (; !at.null(); ++counts.leaves) {
    if (circle.Closes(at)) co_return Damaged(at, kInCircles);
    Leaf leaf;
    co_await leaves_.Read(op, at, leaf);
    const BoundRef fence(leaf.header.fence_ref);
    if (fence.in_block()) {
      const uint64_t bytes = co_await table_.SizeOf(op, fence.block());
      stats.index_bytes += bytes;
    }
    for (size_t slot = 0; slot < shape.span; ++slot) {
      const Entry entry = leaf.Get(shape, slot);
      if (!entry.used) continue;
      ++stats.records;
      if (shape.inline_keys) continue;
      const uint64_t bytes = co_await table_.SizeOf(op, BlockRef(entry.value));
      stats.block_bytes += bytes;
    }
    at = NodePtr(leaf.header.sibling);
  }
  co_return Done{};
}

void StatsCollector::AddDetails(const Counts& counts, TableStats& stats) const {
  stats.details = {
      {"leaves", static_cast<double>(counts.leaves)},
      {"inner nodes", static_cast<double>(counts.inner_nodes)},
      {"levels", static_cast<double>(counts.levels)},
      {"load", ShareOf(stats.records, stats.slots)},
      {"cached nodes", static_cast<double>(inner_nodes_.size())},
      {"cache bytes", static_cast<double>(inner_nodes_.bytes())},
  };
  if (hotspots_.bytes() == 0) return;
  const SpeculationCounts& speculation = searcher_.counts();
  stats.details.emplace_back("hotspots", static_cast<double>(hotspots_.size()));
  stats.details.emplace_back("hotspot bytes", static_cast<double>(hotspots_.bytes()));
  stats.details.emplace_back("hotspot hit ratio", ShareOf(speculation.speculations, speculation.searches));
  stats.details.emplace_back("right speculations", ShareOf(speculation.hits, speculation.speculations));
}

}  // namespace farside::index::chime
