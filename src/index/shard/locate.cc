// Finding the bucket that decides about a key, while others split buckets.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "index/shard/mutants.h"
#include "index/shard/shard.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::Op;
using fabric::Read;

namespace {

constexpr int kMostAttempts = 1000;
// READs in a row that somebody came between. A living writer does that for one trip; a dead one for ever.
constexpr int kTornUntilHelp = 3;
constexpr int kMostHelps = 64;
constexpr size_t kMostNodes = 1 << 16;

std::span<std::byte> BytesOf(std::span<Line> lines) { return std::as_writable_bytes(lines); }

}  // namespace

Table::UnitStatus Table::Classify(const Partition& part, uint64_t number, uint64_t unit,
                                  std::span<const Line> lines) const {
  const std::optional<uint32_t> version = Mutant(kTornAccepted) ? lines[0].version() : VersionOf(lines);
  if (!version.has_value()) return UnitStatus::kTorn;
  if (*version == 0) return UnitStatus::kAbove;
  if (*version > part.directory().version) return UnitStatus::kNewer;
  if (UnitOf(shape(), number, *version) != unit) return UnitStatus::kSplitPast;
  return UnitStatus::kDecides;
}

std::optional<uint64_t> Table::NewUnitOf(const Partition& part, uint64_t number) const {
  const Directory& directory = part.directory();
  if (!directory.announced) return std::nullopt;
  const uint64_t moved = UnitOf(shape(), number, directory.version + 1);
  if (moved == UnitOf(shape(), number, directory.version)) return std::nullopt;
  return moved;
}

// The unit that the unit of a version is split from; itself, if it is one of the first.
uint64_t Table::UnitAbove(uint64_t number, uint32_t version) const {
  const uint64_t unit = UnitOf(shape(), number, version);
  while (version > 1 && UnitOf(shape(), number, version) == unit) --version;
  return UnitOf(shape(), number, version);
}

// The version below `level` whose unit is the first above that has been written. Nearly always the next one; a table that
// went several versions by one resize has units that are far behind, so all that is above is looked at by one trip.
Task<uint32_t> Table::NearestAbove(Op& op, Partition& part, Candidate candidate, uint64_t number,
                                   uint32_t level) {
  std::vector<uint32_t> levels;
  for (uint64_t unit = UnitOf(shape(), number, level); level > 1; --level) {
    if (UnitOf(shape(), number, level - 1) == unit) continue;
    unit = UnitOf(shape(), number, level - 1);
    levels.push_back(level - 1);
  }
  if (levels.empty()) co_return 1u;
  if (levels.size() == 1) co_return levels.front();
  std::vector<Line> first(levels.size());
  fabric::Batch trip(op, fabric::Order::kInOrder);
  for (size_t i = 0; i < levels.size(); ++i) {
    const uint64_t unit = UnitOf(shape(), number, levels[i]);
    const FarAddr at = candidate == Candidate::kLevel1 ? part.BucketAt(unit) : part.OverflowAt(unit);
    trip.Add(Read(at, BytesOf(std::span(&first[i], 1))));
  }
  co_await trip;
  for (size_t i = 0; i < levels.size(); ++i) {
    if (first[i].version() != 0) co_return levels[i];
  }
  co_return levels.back();
}

// Goes up from the unit of the newest version to the one that it will be split from, until one of them decides.
Task<Done> Table::ReadUnit(Op& op, Partition& part, Candidate candidate, uint64_t number,
                           std::span<Line> lines, uint64_t& unit) {
  const auto at = [&](uint64_t of) {
    return candidate == Candidate::kLevel1 ? part.BucketAt(of) : part.OverflowAt(of);
  };
  uint32_t level = part.directory().version;
  int torn = 0;
  int helped_in_vain = 0;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const uint32_t known = part.directory().version;
    unit = UnitOf(shape(), number, level);
    const bool newest = level == known;
    const std::optional<uint64_t> moved = newest ? NewUnitOf(part, number) : std::nullopt;
    if (moved.has_value() && !Mutant(kChildNotRead)) {
      Line first;
      co_await op.InOrder(Read(at(unit), BytesOf(lines)), Read(at(*moved), BytesOf(std::span(&first, 1))));
      // INVARIANT shard/7: the new unit decides as soon as it has a version; then the resize is past its announcement.
      if (first.version() != 0) {
        co_await part.Refresh(op);
        level = part.directory().version;
        op.CountRetry();
        continue;
      }
    } else if (const uint64_t above = UnitAbove(number, level); newest && above != unit) {
      // It may not be split yet; then the unit above decides, as a rule, and it is here already.
      std::array<Line, kMostLines> lines_above;
      const std::span<Line> read_above = std::span(lines_above).first(lines.size());
      co_await op.InOrder(Read(at(unit), BytesOf(lines)), Read(at(above), BytesOf(read_above)));
      if (Classify(part, number, unit, lines) == UnitStatus::kAbove &&
          Classify(part, number, above, read_above) == UnitStatus::kDecides && !Mutant(kUnsplitIsEmpty)) {
        std::copy(read_above.begin(), read_above.end(), lines.begin());
        unit = above;
        co_return Done{};
      }
    } else {
      co_await op.InOrder(Read(at(unit), BytesOf(lines)));
    }
    // Another operation of this client may have learned of a resize meanwhile. One of several versions may have moved the
    // number to a unit that was not looked at.
    if (part.directory().version != known) {
      level = part.directory().version;
      op.CountRetry();
      continue;
    }
    switch (Classify(part, number, unit, lines)) {
      case UnitStatus::kDecides: co_return Done{};
      case UnitStatus::kAbove: {
        if (Mutant(kUnsplitIsEmpty)) {
          for (Line& line : lines) line.set_version(part.directory().version);
          co_return Done{};
        }
        level = co_await NearestAbove(op, part, candidate, number, level);
        if (UnitOf(shape(), number, level) == unit) {
          co_return Error(
              ErrorCode::kCorrupt,
              fmt::format("unit {} of the shard table on node {} was never written; run farside fsck", unit,
                          fabric::Index(part.node())));
        }
        continue;
      }
      case UnitStatus::kNewer:
        if (Mutant(kNotRefreshed)) co_return Done{};
        co_await part.Refresh(op);
        break;
      case UnitStatus::kTorn:
        if (++torn >= kTornUntilHelp) {
          const bool is_new =
              std::any_of(lines.begin(), lines.end(), [](const Line& l) { return l.version() == 0; });
          co_await Help(op, part, unit, is_new);
          torn = 0;
          if (++helped_in_vain == kMostHelps) co_return HalfSplitForEver(part, unit);
        }
        break;
      case UnitStatus::kSplitPast: break;
    }
    level = part.directory().version;
    op.CountRetry();
  }
  co_return Error(ErrorCode::kContended,
                  fmt::format("a bucket changed {} times while it was read; retry later", kMostAttempts));
}

// Its lock is held by whoever is splitting it, or (if it is new) by whoever is splitting the unit it comes from. Waiting
// for the lock is waiting for them, and finishes what the dead have left.
Task<Done> Table::Help(Op& op, Partition& part, uint64_t unit, bool is_new) {
  const uint64_t locked = is_new ? unit & ~std::bit_floor(unit) : unit;
  co_await Lock(op, part, locked, {});
  Unlock(op, part, locked);
  co_return Done{};
}

Error Table::HalfSplitForEver(const Partition& part, uint64_t unit) {
  return Error(
      ErrorCode::kCorrupt,
      fmt::format("the lines of unit {} of the shard table on node {} do not fit together, and nobody is "
                  "splitting it; run farside fsck",
                  unit, fabric::Index(part.node())));
}

Task<Done> Table::ReadBucket(Op& op, Partition& part, uint64_t number, Bucket& bucket) {
  const std::span<Line> lines = std::span(bucket.lines).first(shape().lines());
  co_await ReadUnit(op, part, Candidate::kLevel1, number, lines, bucket.unit);
  bucket.version = bucket.lines[0].version();
  co_return Done{};
}

Task<Done> Table::ReadOverflow(Op& op, Partition& part, uint64_t number, Overflow& overflow) {
  co_await ReadUnit(op, part, Candidate::kFirstChoice, number, std::span(&overflow.line, 1), overflow.unit);
  overflow.version = overflow.line.version();
  co_return Done{};
}

// What a link names was there when the line was read, and the pin keeps it.
Task<Done> Table::ReadNodes(Op& op, Partition& part, Overflow& overflow) {
  overflow.nodes.clear();
  const Line* last = &overflow.line;
  while (last->has_link()) {
    if (overflow.nodes.size() == kMostNodes) {
      co_return Error(
          ErrorCode::kCorrupt,
          fmt::format("the overflow chain of unit {} does not end; run farside fsck", overflow.unit));
    }
    Node node;
    node.at = FarAddr(part.node(), last->entries[kLinkSlot].offset());
    co_await op.InOrder(Read(node.at, BytesOf(std::span(&node.line, 1))));
    overflow.nodes.push_back(node);
    last = &overflow.nodes.back().line;
  }
  co_return Done{};
}

// Both choices in one trip, as a rule.
Task<Done> Table::ReadOverflows(Op& op, Partition& part, const KeyHash& hash, View& view) {
  const uint64_t first = hash.number(Candidate::kFirstChoice);
  const uint64_t second = hash.number(Candidate::kSecondChoice);
  if (part.directory().announced) {
    co_await ReadOverflow(op, part, first, view.first);
    co_await ReadOverflow(op, part, second, view.second);
  } else {
    view.first.unit = UnitOf(shape(), first, part.directory().version);
    view.second.unit = UnitOf(shape(), second, part.directory().version);
    co_await op.InOrder(Read(part.OverflowAt(view.first.unit), BytesOf(std::span(&view.first.line, 1))),
                        Read(part.OverflowAt(view.second.unit), BytesOf(std::span(&view.second.line, 1))));
    co_await JudgeOverflows(op, part, hash, view);
  }
  co_await EndOverflows(op, part, hash, view);
  co_return Done{};
}

// Reads again, one by one, what does not decide.
Task<Done> Table::JudgeOverflows(Op& op, Partition& part, const KeyHash& hash, View& view) {
  const auto decides = [&](Candidate candidate, const Overflow& overflow) {
    return Classify(part, hash.number(candidate), overflow.unit, std::span(&overflow.line, 1)) ==
           UnitStatus::kDecides;
  };
  view.first.version = view.first.line.version();
  view.second.version = view.second.line.version();
  if (!decides(Candidate::kFirstChoice, view.first))
    co_await ReadOverflow(op, part, hash.number(Candidate::kFirstChoice), view.first);
  if (!decides(Candidate::kSecondChoice, view.second))
    co_await ReadOverflow(op, part, hash.number(Candidate::kSecondChoice), view.second);
  co_return Done{};
}

Task<Done> Table::EndOverflows(Op& op, Partition& part, const KeyHash& hash, View& view) {
  const uint32_t version = part.directory().version;
  view.has_second = UnitOf(shape(), hash.number(Candidate::kFirstChoice), version) !=
                    UnitOf(shape(), hash.number(Candidate::kSecondChoice), version);
  if (view.first.line.has_link()) co_await ReadNodes(op, part, view.first);
  if (view.has_second && view.second.line.has_link()) co_await ReadNodes(op, part, view.second);
  co_return Done{};
}

// The lines of level 2 that the key may be in, before and after their own splits.
void Table::AddReadsOfChoices(const Partition& part, const KeyHash& hash, uint32_t version, View& view,
                              Choices& choices, std::vector<fabric::ReadIntoVerb>& reads) const {
  for (const Candidate candidate : {Candidate::kFirstChoice, Candidate::kSecondChoice}) {
    const bool first = candidate == Candidate::kFirstChoice;
    Overflow& overflow = first ? view.first : view.second;
    overflow.unit = UnitOf(shape(), hash.number(candidate), version + 1);
    reads.push_back(Read(part.OverflowAt(overflow.unit), BytesOf(std::span(&overflow.line, 1))));
    const uint64_t unit_above = UnitOf(shape(), hash.number(candidate), version);
    if (unit_above != overflow.unit)
      reads.push_back(
          Read(part.OverflowAt(unit_above), BytesOf(std::span(&choices.above[first ? 0 : 1], 1))));
  }
}

void Table::TakeChoices(const KeyHash& hash, uint32_t version, const Choices& choices, View& view) const {
  for (const Candidate candidate : {Candidate::kFirstChoice, Candidate::kSecondChoice}) {
    const bool first = candidate == Candidate::kFirstChoice;
    Overflow& overflow = first ? view.first : view.second;
    overflow.version = overflow.line.version();
    if (overflow.version != 0) continue;
    overflow.line = choices.above[first ? 0 : 1];
    overflow.unit = UnitOf(shape(), hash.number(candidate), version);
    overflow.version = overflow.line.version();
  }
}

Task<Done> Table::ReadChoices(Op& op, Partition& part, const KeyHash& hash, uint32_t version, View& view) {
  Choices choices;
  std::vector<fabric::ReadIntoVerb> reads;
  AddReadsOfChoices(part, hash, version, view, choices, reads);
  fabric::Batch trip(op, fabric::Order::kInOrder);
  for (const fabric::ReadIntoVerb& read : reads) trip.Add(read);
  co_await trip;
  TakeChoices(hash, version, choices, view);
  co_return Done{};
}

// Level 1 first, because what is not in level 1 has to be looked for in the others.
Task<Done> Table::ReadView(Op& op, Partition& part, const KeyHash& hash, View& view) {
  const uint64_t number = hash.number(Candidate::kLevel1);
  view.unjudged = false;
  if (part.directory().announced) {
    co_await ReadBucket(op, part, number, view.bucket);
    co_return Done{};
  }
  const uint32_t version = part.directory().version;
  view.bucket.unit = UnitOf(shape(), number, version);
  view.first.unit = UnitOf(shape(), hash.number(Candidate::kFirstChoice), version);
  view.second.unit = UnitOf(shape(), hash.number(Candidate::kSecondChoice), version);
  const std::span<Line> lines = std::span(view.bucket.lines).first(shape().lines());
  co_await op.InOrder(Read(part.BucketAt(view.bucket.unit), BytesOf(lines)),
                      Read(part.OverflowAt(view.first.unit), BytesOf(std::span(&view.first.line, 1))),
                      Read(part.OverflowAt(view.second.unit), BytesOf(std::span(&view.second.line, 1))));
  if (Mutant(kLevel2First)) co_await op.InOrder(Read(part.BucketAt(view.bucket.unit), BytesOf(lines)));
  // INVARIANT shard/1 rests on it: what is read of level 2 is not older than the bucket. A key may have gone there before the
  // bucket was split, and the split has given the bucket unused slots. So a bucket that is read again leaves these behind.
  view.unjudged = Classify(part, number, view.bucket.unit, lines) == UnitStatus::kDecides;
  if (view.unjudged) {
    view.bucket.version = lines[0].version();
  } else {
    co_await ReadBucket(op, part, number, view.bucket);
  }
  co_return Done{};
}

Task<Done> Table::KnowOverflows(Op& op, Partition& part, const KeyHash& hash, View& view) {
  if (view.unjudged) {
    view.unjudged = false;
    co_await JudgeOverflows(op, part, hash, view);
    co_await EndOverflows(op, part, hash, view);
  } else {
    co_await ReadOverflows(op, part, hash, view);
  }
  co_return Done{};
}

}  // namespace farside::index::shard
