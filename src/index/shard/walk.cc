// Looking through the whole table: for the pool, for fsck, for cursors and for statistics.
//
// All of them go through the units in the order of their numbers, in one level after the other, until there are no more.
// Entries move to units with higher numbers only, never to another level: so whatever is in the table throughout is met,
// in its old place or in its new one, also if the table grows meanwhile.
#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "index/shard/mutants.h"
#include "index/shard/shard.h"
#include "pool/catalog/placement.h"
#include "pool/memory/block.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::Op;
using fabric::OpKind;
using fabric::OpOutcome;
using fabric::Read;

namespace {

constexpr int kTornUntilHelp = 3;
constexpr int kPausesPerLease = 16;
constexpr int kMostHelps = 64;

}  // namespace

Task<Done> Table::ReadRaw(Op& op, Partition& part, uint64_t unit, RawUnit& raw) {
  const std::span<Line> lines = std::span(raw.bucket.lines).first(shape().lines());
  const RetryPolicy retries = RetryPolicySince(pool_.known_catalog_changes(), part);
  int helped_in_vain = 0;
  for (int attempt = 0; helped_in_vain < kMostHelps; ++attempt) {
    co_await op.InOrder(
        Read(part.BucketAt(unit), std::as_writable_bytes(lines)),
        Read(part.OverflowAt(unit), std::as_writable_bytes(std::span(&raw.overflow.line, 1))));
    const std::optional<uint32_t> version = VersionOf(lines);
    bool half_split = !version.has_value();
    if (!half_split && !Mutant(kHalfSplitWalked))
      half_split = co_await IsHalfSplit(op, part, unit, *version, raw);
    if (!half_split) {
      raw.bucket.unit = raw.overflow.unit = unit;
      raw.bucket.version = *version;
      raw.overflow.version = raw.overflow.line.version();
      raw.overflow.nodes.clear();
      if (raw.overflow.line.has_link()) co_await ReadNodes(op, part, raw.overflow);
      co_return Done{};
    }
    if (attempt % kTornUntilHelp == kTornUntilHelp - 1) {
      const bool is_new =
          std::any_of(lines.begin(), lines.end(), [](const Line& l) { return l.version() == 0; });
      const Result<Done> helped = co_await Help(op, part, unit, is_new).Outcome();
      if (!helped.ok() && !retries.Allows(helped.error())) co_return helped.error();
      // The caller's pin stays; whoever walks is not in anybody's way.
      if (helped.ok()) {
        ++helped_in_vain;  // unless somebody else was at it
      } else {
        co_await op.Pause(pool_.member(part.node()).options().lease / kPausesPerLease);
      }
    }
  }
  co_return HalfSplitForEver(part, unit);
}

// Whether a split of the unit, or the one that makes it, has begun and not ended; perhaps because somebody died over it.
// What moved is then in two places, and only the new one follows what others do to it: blocks that the old one names may
// have been reused.
Task<bool> Table::IsHalfSplit(Op& op, Partition& part, uint64_t unit, uint32_t version, const RawUnit& raw) {
  if (raw.overflow.line.version() != version) co_return true;
  if (version == 0 || version >= part.directory().newest) co_return false;
  const uint64_t new_unit = unit + shape().units(version);
  RawUnit made;
  const std::span<Line> lines = std::span(made.bucket.lines).first(shape().lines());
  co_await op.InOrder(
      Read(part.BucketAt(new_unit), std::as_writable_bytes(lines)),
      Read(part.OverflowAt(new_unit), std::as_writable_bytes(std::span(&made.overflow.line, 1))));
  const auto written = [](const Line& line) { return line.version() != 0; };
  co_return written(made.overflow.line) || std::any_of(lines.begin(), lines.end(), written);
}

std::vector<Slot> Table::SlotsOf(const Partition& part, const RawUnit& raw, bool level1) const {
  std::vector<Slot> slots;
  const auto add = [&](Candidate candidate, uint32_t version, FarAddr line_at, const Line& line,
                       size_t count) {
    for (size_t i = 0; i < count; ++i) {
      if (!line.entries[i].has_block()) continue;
      Slot slot{.candidate = candidate, .unit = raw.bucket.unit, .version = version};
      slot.at = line_at + i * sizeof(Entry);
      slot.entry = line.entries[i];
      slots.push_back(slot);
    }
  };
  if (level1) {
    for (size_t i = 0; i < shape().lines(); ++i) {
      const size_t count =
          std::min(kSlotsPerLine, shape().slots - std::min<size_t>(shape().slots, i * kSlotsPerLine));
      add(Candidate::kLevel1, raw.bucket.version, part.BucketAt(raw.bucket.unit) + i * sizeof(Line),
          raw.bucket.lines[i], count);
    }
    return slots;
  }
  add(Candidate::kFirstChoice, raw.overflow.version, part.OverflowAt(raw.bucket.unit), raw.overflow.line,
      raw.overflow.slots(shape()));
  for (const Node& node : raw.overflow.nodes)
    add(Candidate::kFirstChoice, raw.overflow.version, node.at, node.line, kNodeEntries);
  return slots;
}

// ---- walking -----------------------------------------------------------------------------------------

Task<Done> Table::Walk(Op& op, pool::Reach& reach) {
  for (const auto& part : partitions_) {
    reach.Mark(part->root(), sizeof(Root));
    co_await part->Refresh(op);
    // READ once more: the directory has where the segments begin, the root where they were allocated.
    const Root root = co_await op.InOrder(Read<Root>(part->root()));
    const size_t segments = shape().segments(part->directory().newest);
    for (size_t segment = 0; segment < segments; ++segment)
      reach.Mark(FarAddr(part->node(), root.segments[segment]), shape().SegmentBytes(segment));
    for (uint64_t unit = 0; unit < shape().units(part->directory().version); ++unit)
      co_await WalkUnit(op, *part, unit, reach);
    // If it has grown meanwhile, entries may have moved to units that were not looked at.
    uint64_t seen = 0;
    while (seen != shape().units(part->directory().version) && !Mutant(kWalkEndsEarly)) {
      seen = shape().units(part->directory().version);
      co_await part->Refresh(op);
      for (uint64_t unit = seen; unit < shape().units(part->directory().version); ++unit)
        co_await WalkUnit(op, *part, unit, reach);
    }
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Table::WalkUnit(Op& op, Partition& part, uint64_t unit, pool::Reach& reach) {
  RawUnit raw;
  co_await ReadRaw(op, part, unit, raw);
  for (const Node& node : raw.overflow.nodes) reach.Mark(node.at, sizeof(Line));
  for (const bool level1 : {true, false}) {
    const std::vector<Slot> slots = SlotsOf(part, raw, level1);
    for (const Slot& slot : slots) {
      uint64_t bytes = slot.entry.bytes();
      if (bytes == 0) {
        BlockBuffer buffer;
        co_await ReadBlock(op, FarAddr(part.node(), slot.entry.offset()), slot.entry.bytes(), buffer);
        bytes = buffer.bytes().size();
      }
      reach.MarkBlock(FarAddr(part.node(), slot.entry.offset()), bytes);
    }
  }
  co_return Done{};
}

// position: partition, level (0: level 1), unit.
Task<bool> Table::Next(Op& op, Cursor& cursor, std::vector<Record>& page) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  auto& [number, level, unit, unused] = cursor.position;
  const size_t before = page.size();
  while (number < partitions_.size() && page.size() == before) {
    Partition& part = *partitions_[number];
    if (part.IsBehind()) co_await part.CatchUp(op);
    if (unit >= shape().units(part.directory().version)) {
      if (!Mutant(kCursorEndsEarly)) co_await part.Refresh(op);
      if (unit < shape().units(part.directory().version)) continue;
      unit = 0;
      number += level;
      level = 1 - level;
      continue;
    }
    RawUnit raw;
    co_await ReadRaw(op, part, unit, raw);
    const std::vector<Slot> slots = SlotsOf(part, raw, level == 0);
    for (const Slot& slot : slots) {
      BlockBuffer buffer;
      co_await ReadBlock(op, FarAddr(part.node(), slot.entry.offset()), slot.entry.bytes(), buffer);
      const Result<pool::BlockView> view = pool::DecodeBlock(buffer.bytes());
      if (!view.ok()) co_return view.error();
      page.push_back({.key = std::string(view->key), .value = std::string(view->value)});
    }
    ++unit;
  }
  op.End(OpKind::kScan, OpOutcome::kDone);
  co_return page.size() > before;
}

// ---- statistics --------------------------------------------------------------------------------------

Task<TableStats> Table::Stats(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  TableStats stats;
  std::array<uint64_t, 3> levels{};
  uint64_t resizes = 0;
  for (const auto& part : partitions_) {
    co_await part->Refresh(op);
    resizes = std::max<uint64_t>(resizes, part->directory().version - 1);
    co_await AddStats(op, *part, stats, levels);
  }
  const auto records = static_cast<double>(std::max<uint64_t>(stats.records, 1));
  stats.client_bytes = partitions_.size() * sizeof(Directory) + locations_.bytes();
  stats.details = {
      {"share in level 1", static_cast<double>(levels[0]) / records},
      {"share in level 2", static_cast<double>(levels[1]) / records},
      {"share in level 3", static_cast<double>(levels[2]) / records},
      {"load", static_cast<double>(stats.records) / static_cast<double>(std::max<uint64_t>(stats.slots, 1))},
      {"resizes", static_cast<double>(resizes)},
      {"directory bytes", static_cast<double>(partitions_.size() * sizeof(Directory))},
      {"location cache bytes", static_cast<double>(locations_.bytes())},
  };
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return stats;
}

// That of the node that is ahead.
uint64_t Table::growth() const {
  uint64_t most = 0;
  for (const auto& part : partitions_) {
    const Directory& directory = part->directory();
    if (directory.version > 0)
      most = std::max<uint64_t>(most, 2 * (directory.version - 1) + directory.announced);
  }
  return most;
}

Task<Done> Table::AddStats(Op& op, Partition& part, TableStats& stats, std::array<uint64_t, 3>& levels) {
  const uint32_t version = part.directory().version;
  stats.slots += shape().capacity(version);
  stats.index_bytes += sizeof(Root);
  for (size_t segment = 0; segment < shape().segments(version); ++segment)
    stats.index_bytes += shape().SegmentBytes(segment);
  for (uint64_t unit = 0; unit < shape().units(version); ++unit) {
    RawUnit raw;
    co_await ReadRaw(op, part, unit, raw);
    stats.index_bytes += raw.overflow.nodes.size() * sizeof(Line);
    stats.slots += raw.overflow.nodes.size() * kNodeEntries;
    for (const bool level1 : {true, false}) {
      const std::vector<Slot> slots = SlotsOf(part, raw, level1);
      stats.records += slots.size();
      for (const Slot& slot : slots) {
        const bool in_line =
            !level1 && slot.at.offset / pool::kLine == part.OverflowAt(unit).offset / pool::kLine;
        ++levels[level1 ? 0 : in_line ? 1 : 2];
        uint64_t bytes = slot.entry.bytes();
        if (bytes == 0) {
          BlockBuffer buffer;
          co_await ReadBlock(op, FarAddr(part.node(), slot.entry.offset()), slot.entry.bytes(), buffer);
          bytes = buffer.bytes().size();
        }
        stats.block_bytes += bytes;
      }
    }
  }
  co_return Done{};
}

// ---- verifying ---------------------------------------------------------------------------------------

Task<Done> Table::Verify(Op& op) {
  const pool::PoolClient::Pin pin = pool_.Begin();
  for (const auto& part : partitions_) {
    co_await part->Refresh(op);
    for (uint64_t unit = 0; unit < shape().units(part->directory().version); ++unit)
      co_await VerifyUnit(op, *part, unit);
  }
  op.End(OpKind::kMaintenance, OpOutcome::kDone);
  co_return Done{};
}

Task<Done> Table::VerifyUnit(Op& op, Partition& part, uint64_t unit) {
  RawUnit raw;
  co_await ReadRaw(op, part, unit, raw);
  const auto broken = [&](std::string_view what) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("unit {} of node {} {}", unit, fabric::Index(part.node()), what));
  };
  const uint32_t version = part.directory().version;
  if (raw.bucket.version > version || raw.overflow.version > version)
    co_return broken("is newer than its table");
  if (raw.bucket.version != raw.overflow.version)
    co_return broken("is split in one level and not in the other");
  if (unit < shape().units(1) && raw.bucket.version == 0) co_return broken("was never written");
  // INVARIANT shard/1: nothing is used behind an unused slot, nor in slots that are none.
  bool unused = false;
  for (size_t slot = 0; slot < shape().lines() * kSlotsPerLine; ++slot) {
    const Entry entry = raw.bucket.entry(slot);
    if (!entry.empty() && (unused || slot >= shape().slots))
      co_return broken("has an entry behind an unused slot");
    unused |= entry.empty();
    if (!entry.empty() && raw.bucket.version == 0) co_return broken("has entries and no version");
  }
  for (const bool level1 : {true, false}) {
    const std::vector<Slot> slots = SlotsOf(part, raw, level1);
    for (const Slot& slot : slots) co_await VerifySlot(op, part, slot);
  }
  co_return Done{};
}

// The block is whole, and whoever looks for its key finds this very slot (shard/1, shard/4).
Task<Done> Table::VerifySlot(Op& op, Partition& part, Slot slot) {
  BlockBuffer buffer;
  co_await ReadBlock(op, FarAddr(part.node(), slot.entry.offset()), slot.entry.bytes(), buffer);
  const Result<pool::BlockView> block = pool::DecodeBlock(buffer.bytes());
  if (!block.ok()) co_return block.error();
  const std::string key(block->key);
  const KeyHash hash(block->hash);
  const bool placed = &PartitionOf(hash) == &part;
  View view;
  co_await ReadView(op, part, hash, view);
  if (view.bucket.overflow()) co_await KnowOverflows(op, part, hash, view);
  const std::optional<Found> found = co_await FindKey(op, part, hash, view, key, buffer);
  if (placed && found.has_value() && found->slot.at == slot.at) co_return Done{};
  const std::string_view what = !placed             ? "belongs to another node"
                                : found.has_value() ? "stands twice"
                                                    : "stands where nobody looks for it";
  co_return Error(ErrorCode::kCorrupt,
                  fmt::format("the key \"{}\" {}: in level {} of unit {} (version {}); its bucket is unit {} "
                              "(version {}, overflow {})",
                              Escape(key), what, slot.candidate == Candidate::kLevel1 ? 1 : 2, slot.unit,
                              slot.version, view.bucket.unit, view.bucket.version, view.bucket.overflow()));
}

}  // namespace farside::index::shard
