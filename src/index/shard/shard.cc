// A table as one client has it open, and the engine that makes tables.
#include "index/shard/shard.h"

#include <fmt/format.h>

#include <algorithm>

#include "index/shard/mutants.h"
#include "index/shard/search_batch.h"
#include "pool/catalog/placement.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

namespace {

constexpr uint64_t kWrittenByATrip = 256 * 1024;

}  // namespace

Table::Table(const Options& options, pool::PoolClient& pool, const std::vector<FarAddr>& roots)
    : options_(options), pool_(pool), locations_(options.cached_locations) {
  for (const FarAddr& root : roots) {
    partitions_.push_back(std::make_shared<Partition>(options_, pool_, root));
    nodes_.push_back(root.node);
    pool_.AddSyncListener(root.node, partitions_.back());
  }
}

Table::~Table() {
  for (const auto& part : partitions_) pool_.RemoveSyncListener(part->node(), part.get());
}

Partition& Table::PartitionOf(uint64_t hash) {
  return *partitions_[nodes_.size() == 1 ? 0 : pool::PickNode(hash, nodes_)];
}

RetryPolicy Table::RetryPolicySince(uint64_t catalogs, const Partition& part,
                                    std::optional<Nanos> began) const {
  return RetryPolicy(pool_, part.node(), options_.backoff, catalogs, kPinsPastADrop, began);
}

// ---- engine ------------------------------------------------------------------------------------------

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
      root = co_await MakeRoot(op, allocator, *segment).Outcome();
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

Task<FarAddr> ShardEngine::MakeRoot(Op& op, pool::Allocator& allocator, FarAddr segment) {
  const FarAddr at = co_await allocator.Allocate(op, sizeof(Root));
  Root root{};
  root.line.state = StateWord::Steady(1);
  root.segments[0] = segment.offset;
  co_await op.InOrder(Unreachable(WriteObject(at, root)));
  co_return at;
}

std::unique_ptr<Index> ShardEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, roots);
}

std::string ShardEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  for (const FarAddr& root : roots) {
    if (at.node != root.node || at.offset < root.offset || at.offset >= root.offset + sizeof(Root)) continue;
    const uint64_t inside = at.offset - root.offset;
    if (inside == 0) return "root state";
    if (inside == kRecordsOffset) return "root records";
    if (inside >= kDirectoryOffset) return fmt::format("root segment {}", (inside - kDirectoryOffset) / 8);
    return "root";
  }
  return "";
}

// Few keys: so buckets of one or two slots, and loads at which two keys are enough to resize.
std::vector<OptionMap> ShardEngine::stress_options() const {
  return {
      // Resizes, keys in level 1.
      {{"slots", "8"}, {"overflow_slots", "2"}, {"max_load", "0.05"}, {"burst", "0"}},
      // The location cache, few resizes.
      {{"slots", "16"}, {"overflow_slots", "1"}, {"max_load", "0.9"}, {"burst", "0"}, {"cache", "16"}},
      // All three levels.
      {{"slots", "1"}, {"overflow_slots", "1"}, {"max_load", "0.9"}, {"burst", "0"}},
      // Holes, level 2, some resizes.
      {{"slots", "2"}, {"overflow_slots", "8"}, {"max_load", "0.1"}, {"burst", "0"}},
      // Resizes one behind the other, and several versions at once.
      {{"slots", "1"}, {"overflow_slots", "1"}, {"max_load", "0.02"}, {"burst", "1"}},
  };
}

Result<std::shared_ptr<Engine>> MakeShardEngine(const OptionMap& options) {
  Result<Options> parsed = Options::Parse(options);
  if (!parsed.ok()) return parsed.error();
  return std::shared_ptr<Engine>(std::make_shared<ShardEngine>(*parsed));
}

}  // namespace farside::index::shard
