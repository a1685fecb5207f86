#include "index/shard/walker.h"

#include <algorithm>
#include <string>

#include "index/kit/block_buffer.h"
#include "index/kit/retry_policy.h"
#include "index/shard/mutants.h"
#include "index/shard/unit_reader.h"
#include "pool/beats.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Read;

namespace {

constexpr int kTornUntilHelp = 3;
constexpr int kPausesPerLease = 16;
constexpr int kMostHelps = 64;

}  // namespace

Task<Done> Walker::ReadRaw(Access at, uint64_t unit, RawUnit& raw) {
  const std::span<Line> lines = std::span(raw.bucket.lines).first(at.shape().lines());
  const RetryPolicy policy(pool_, at.part.node(), backoff_, pool_.known_catalog_changes());
  int helped_in_vain = 0;
  for (int attempt = 0; helped_in_vain < kMostHelps; ++attempt) {
    co_await at.op.InOrder(Read(at.part.BucketAt(unit), BytesOf(lines)),
                           Read(at.part.OverflowAt(unit), BytesOf(raw.overflow.line)));
    const std::optional<uint32_t> version = VersionOf(lines);
    bool half_split = !version.has_value();
    if (!half_split && !Mutant(kHalfSplitWalked)) half_split = co_await IsHalfSplit(at, unit, *version, raw);
    if (!half_split) {
      raw.bucket.unit = raw.overflow.unit = unit;
      raw.bucket.version = *version;
      raw.overflow.version = raw.overflow.line.version();
      raw.overflow.nodes.clear();
      if (raw.overflow.line.has_link()) co_await ReadNodes(at, raw.overflow);
      co_return Done{};
    }
    if (attempt % kTornUntilHelp == kTornUntilHelp - 1) {
      const bool is_new =
          std::any_of(lines.begin(), lines.end(), [](const Line& line) { return line.version() == 0; });
      const Result<Done> helped = co_await locks_.AwaitSplit(at, unit, is_new).Outcome();
      if (!helped.ok() && !policy.Allows(helped.error())) co_return helped.error();
      // The caller's pin stays; a walk holds no lock that others wait for.
      if (helped.ok()) {
        ++helped_in_vain;  // unless another client was at it
      } else {
        co_await at.op.Pause(pool_.member(at.part.node()).options().lease / kPausesPerLease);
      }
    }
  }
  co_return HalfSplitForever(at.part, unit);
}

// Whether a split of the unit, or the one that makes it, has begun and not ended; perhaps because a client
// died over it. What moved is then in two places, and only the new one follows what other clients do to it:
// blocks that the old one names may have been reused.
Task<bool> Walker::IsHalfSplit(Access at, uint64_t unit, uint32_t version, const RawUnit& raw) {
  if (raw.overflow.line.version() != version) co_return true;
  if (version == 0 || version >= at.directory().newest) co_return false;
  const uint64_t new_unit = unit + at.shape().units(version);
  RawUnit made;
  const std::span<Line> lines = std::span(made.bucket.lines).first(at.shape().lines());
  co_await at.op.InOrder(Read(at.part.BucketAt(new_unit), BytesOf(lines)),
                         Read(at.part.OverflowAt(new_unit), BytesOf(made.overflow.line)));
  const auto written = [](const Line& line) { return line.version() != 0; };
  co_return written(made.overflow.line) || std::any_of(lines.begin(), lines.end(), written);
}

std::vector<Slot> Walker::SlotsOf(const Access& at, const RawUnit& raw, bool level1) {
  const Shape& shape = at.shape();
  std::vector<Slot> slots;
  const auto add = [&](Candidate candidate, uint32_t version, FarAddr line_at, const Line& line,
                       size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (!line.entries[i].has_block()) continue;
      slots.push_back({.candidate = candidate,
                       .unit = raw.bucket.unit,
                       .version = version,
                       .at = line_at + i * sizeof(Entry),
                       .entry = line.entries[i]});
    }
  };
  if (level1) {
    for (size_t i = 0; i < shape.lines(); ++i) {
      const size_t count =
          std::min(kSlotsPerLine, shape.slots - std::min<size_t>(shape.slots, i * kSlotsPerLine));
      add(Candidate::kLevel1, raw.bucket.version, at.part.BucketAt(raw.bucket.unit) + i * sizeof(Line),
          raw.bucket.lines[i], count);
    }
    return slots;
  }
  add(Candidate::kFirstChoice, raw.overflow.version, at.part.OverflowAt(raw.bucket.unit), raw.overflow.line,
      raw.overflow.slots(shape));
  for (const Node& node : raw.overflow.nodes)
    add(Candidate::kFirstChoice, raw.overflow.version, node.at, node.line, kNodeEntries);
  return slots;
}

Task<uint64_t> Walker::BytesOfBlock(Access at, Entry entry) {
  if (entry.bytes() != 0) co_return entry.bytes();
  BlockBuffer block;
  co_await ReadBlock(at.op, FarAddr(at.part.node(), entry.offset()), entry.bytes(), block);
  co_return block.bytes().size();
}

// ---- walking -----------------------------------------------------------------------------------------

Task<Done> Walker::Walk(Op& op, pool::Reach& reach) {
  pool::Beats beats(pool_);
  for (size_t i = 0; i < partitions_.size(); ++i) {
    const Access at{op, partitions_[i]};
    co_await WalkPartition(at, reach);
    if (beats.Due()) co_await beats.Beat(op);
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Walker::WalkPartition(Access at, pool::Reach& reach) {
  const Shape& shape = at.shape();
  Partition& part = at.part;
  pool::Beats beats(pool_);
  reach.Mark(part.root(), sizeof(Root));
  co_await part.Refresh(at.op);
  // READ once more: the directory has where the segments begin, the root where they were allocated.
  const Root root = co_await at.op.InOrder(Read<Root>(part.root()));
  const size_t segments = shape.segments(part.directory().newest);
  for (size_t segment = 0; segment < segments; ++segment)
    reach.Mark(FarAddr(part.node(), root.segments[segment]), shape.SegmentBytes(segment));
  for (uint64_t unit = 0; unit < shape.units(part.directory().version); ++unit) {
    co_await WalkUnit(at, unit, reach);
    if (beats.Due()) co_await beats.Beat(at.op);
  }
  // If it has grown meanwhile, entries may have moved to units that were not looked at.
  uint64_t seen = 0;
  while (seen != shape.units(part.directory().version) && !Mutant(kWalkEndsEarly)) {
    seen = shape.units(part.directory().version);
    co_await part.Refresh(at.op);
    for (uint64_t unit = seen; unit < shape.units(part.directory().version); ++unit) {
      co_await WalkUnit(at, unit, reach);
      if (beats.Due()) co_await beats.Beat(at.op);
    }
  }
  co_return Done{};
}

Task<Done> Walker::WalkUnit(Access at, uint64_t unit, pool::Reach& reach) {
  RawUnit raw;
  co_await ReadRaw(at, unit, raw);
  for (const Node& node : raw.overflow.nodes) reach.Mark(node.at, sizeof(Line));
  for (const bool level1 : {true, false}) {
    const std::vector<Slot> slots = SlotsOf(at, raw, level1);
    for (const Slot& slot : slots) {
      const uint64_t bytes = co_await BytesOfBlock(at, slot.entry);
      reach.MarkBlock(FarAddr(at.part.node(), slot.entry.offset()), bytes, 0);
    }
  }
  co_return Done{};
}

// position: partition, level (0: level 1), unit.
Task<bool> Walker::Next(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  auto& [number, level, unit, unused] = cursor.position;
  const size_t before = page.size();
  while (number < partitions_.size() && page.size() == before) {
    const Access at{op, partitions_[number]};
    if (at.part.IsBehind()) co_await at.part.CatchUp(op);
    if (unit >= at.shape().units(at.directory().version)) {
      if (!Mutant(kCursorEndsEarly)) co_await at.part.Refresh(op);
      if (unit < at.shape().units(at.directory().version)) continue;
      unit = 0;
      number += level;
      level = 1 - level;
      continue;
    }
    co_await AppendUnit(at, unit, level == 0, page);
    ++unit;
  }
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return page.size() > before;
}

Task<Done> Walker::AppendUnit(Access at, uint64_t unit, bool level1, std::vector<Record>& page) {
  RawUnit raw;
  co_await ReadRaw(at, unit, raw);
  const std::vector<Slot> slots = SlotsOf(at, raw, level1);
  for (const Slot& slot : slots) {
    BlockBuffer block;
    co_await ReadBlock(at.op, FarAddr(at.part.node(), slot.entry.offset()), slot.entry.bytes(), block);
    const Result<pool::BlockView> view = pool::DecodeBlock(block.bytes());
    if (!view.ok()) co_return view.error();
    page.push_back({.key = std::string(view->key), .value = std::string(view->value)});
  }
  co_return Done{};
}

// ---- statistics --------------------------------------------------------------------------------------

Task<TableStats> Walker::Stats(Op& op, uint64_t cache_bytes) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  TableStats stats;
  LevelCounts levels;
  uint64_t resizes = 0;
  for (size_t i = 0; i < partitions_.size(); ++i) {
    const Access at{op, partitions_[i]};
    co_await at.part.Refresh(op);
    resizes = std::max<uint64_t>(resizes, at.directory().version - 1);
    co_await AddStats(at, stats, levels);
  }
  const auto records = static_cast<double>(std::max<uint64_t>(stats.records, 1));
  const auto slots = static_cast<double>(std::max<uint64_t>(stats.slots, 1));
  const uint64_t directory_bytes = partitions_.size() * sizeof(Directory);
  stats.client_bytes = directory_bytes + cache_bytes;
  stats.details = {
      {"share in level 1", static_cast<double>(levels.records[0]) / records},
      {"share in level 2", static_cast<double>(levels.records[1]) / records},
      {"share in level 3", static_cast<double>(levels.records[2]) / records},
      {"load", static_cast<double>(stats.records) / slots},
      {"resizes", static_cast<double>(resizes)},
      {"directory bytes", static_cast<double>(directory_bytes)},
      {"location cache bytes", static_cast<double>(cache_bytes)},
  };
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return stats;
}

Task<Done> Walker::AddStats(Access at, TableStats& stats, LevelCounts& levels) {
  const Shape& shape = at.shape();
  const uint32_t version = at.directory().version;
  stats.slots += shape.capacity(version);
  stats.index_bytes += sizeof(Root);
  for (size_t segment = 0; segment < shape.segments(version); ++segment)
    stats.index_bytes += shape.SegmentBytes(segment);
  for (uint64_t unit = 0; unit < shape.units(version); ++unit) co_await AddUnitStats(at, unit, stats, levels);
  co_return Done{};
}

Task<Done> Walker::AddUnitStats(Access at, uint64_t unit, TableStats& stats, LevelCounts& levels) {
  RawUnit raw;
  co_await ReadRaw(at, unit, raw);
  stats.index_bytes += raw.overflow.nodes.size() * sizeof(Line);
  stats.slots += raw.overflow.nodes.size() * kNodeEntries;
  for (const bool level1 : {true, false}) {
    const std::vector<Slot> slots = SlotsOf(at, raw, level1);
    stats.records += slots.size();
    for (const Slot& slot : slots) {
      const bool in_line =
          !level1 && slot.at.offset / pool::kLine == at.part.OverflowAt(unit).offset / pool::kLine;
      ++levels.records[level1 ? 0 : in_line ? 1 : 2];
      const uint64_t bytes = co_await BytesOfBlock(at, slot.entry);
      stats.block_bytes += bytes;
    }
  }
  co_return Done{};
}

}  // namespace farside::index::shard
