#include "index/shard/unit_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "index/shard/mutants.h"

namespace farside::index::shard {

using fabric::FarAddr;
using fabric::Read;

namespace {

constexpr int kMostAttempts = 1000;
// READs in a row that a split came between. A living client does that for one trip; a dead one for ever.
constexpr int kTornUntilHelp = 3;
constexpr int kMostHelps = 64;
// Looks at a unit in a row that sent the search back to the directory, and found the unit and the directory
// as they were before.
constexpr int kSameUntilDamaged = 16;
constexpr size_t kMostNodes = 1 << 16;

FarAddr AddressOf(const Partition& part, Candidate candidate, uint64_t unit) {
  return candidate == Candidate::kLevel1 ? part.BucketAt(unit) : part.OverflowAt(unit);
}

// The unit that the unit of a version is split from; itself, if it is one of the first.
uint64_t UnitAbove(const Shape& shape, uint64_t number, uint32_t version) {
  const uint64_t unit = UnitOf(shape, number, version);
  while (version > 1 && UnitOf(shape, number, version) == unit) --version;
  return UnitOf(shape, number, version);
}

Error NeverWritten(const Partition& part, uint64_t unit) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("unit {} of the shard table on node {} was never written; run farside fsck", unit,
                           fabric::Index(part.node())));
}

Error NeverDecides(const Partition& part, uint64_t unit, uint32_t version) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("unit {} of the shard table on node {} has version {}, which fits neither its "
                           "directory nor its place; run farside fsck",
                           unit, fabric::Index(part.node()), version));
}

}  // namespace

UnitStatus Classify(const Partition& part, uint64_t number, uint64_t unit, std::span<const Line> lines) {
  const std::optional<uint32_t> version = Mutant(kTornAccepted) ? lines[0].version() : VersionOf(lines);
  if (!version.has_value()) return UnitStatus::kTorn;
  if (*version == 0) return UnitStatus::kAbove;
  if (*version > part.directory().version) return UnitStatus::kNewer;
  if (UnitOf(part.shape(), number, *version) != unit) return UnitStatus::kSplitPast;
  return UnitStatus::kDecides;
}

std::optional<uint64_t> NewUnitOf(const Partition& part, uint64_t number) {
  const Directory& directory = part.directory();
  if (!directory.announced) return std::nullopt;
  const uint64_t moved = UnitOf(part.shape(), number, directory.version + 1);
  if (moved == UnitOf(part.shape(), number, directory.version)) return std::nullopt;
  return moved;
}

Error HalfSplitForever(const Partition& part, uint64_t unit) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the lines of unit {} of the shard table on node {} do not fit together, and no "
                           "client is splitting it; run farside fsck",
                           unit, fabric::Index(part.node())));
}

Task<Done> ReadNodes(Access at, Overflow& overflow) {
  overflow.nodes.clear();
  const Line* last = &overflow.line;
  while (last->has_link()) {
    if (overflow.nodes.size() == kMostNodes) {
      co_return Error(
          ErrorCode::kCorrupt,
          fmt::format("the overflow chain of unit {} does not end; run farside fsck", overflow.unit));
    }
    Node node;
    node.at = FarAddr(at.part.node(), last->entries[kLinkSlot].offset());
    co_await at.op.InOrder(Read(node.at, BytesOf(node.line)));
    overflow.nodes.push_back(node);
    last = &overflow.nodes.back().line;
  }
  co_return Done{};
}

Task<Done> UnitReader::ReadBucket(Access at, uint64_t number, Bucket& bucket) {
  const std::span<Line> lines = std::span(bucket.lines).first(at.shape().lines());
  const Wanted wanted{Candidate::kLevel1, number, lines, bucket.unit};
  co_await ReadUnit(at, wanted);
  bucket.version = bucket.lines[0].version();
  co_return Done{};
}

Task<Done> UnitReader::ReadOverflow(Access at, uint64_t number, Overflow& overflow) {
  const Wanted wanted{Candidate::kFirstChoice, number, std::span(&overflow.line, 1), overflow.unit};
  co_await ReadUnit(at, wanted);
  overflow.version = overflow.line.version();
  co_return Done{};
}

// Goes up from the unit of the newest version to the one that it will be split from, until one of them
// decides.
Task<Done> UnitReader::ReadUnit(Access at, Wanted wanted) {
  wanted.level = at.directory().version;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const uint32_t known = at.directory().version;
    const Look look = co_await LookAtUnit(at, wanted);
    if (look == Look::kDecided) co_return Done{};
    // Another operation of this client may have learned of a resize meanwhile. One of several versions may
    // have moved the number to a unit that was not looked at.
    if (look == Look::kAgain || at.directory().version != known) {
      if (const Status begun = BeginAnew(at, wanted); !begun.ok()) co_return begun.error();
      continue;
    }
    switch (Classify(at.part, wanted.number, wanted.unit, wanted.lines)) {
      case UnitStatus::kDecides: co_return Done{};
      case UnitStatus::kAbove:
        if (Mutant(kUnsplitIsEmpty)) {
          for (Line& line : wanted.lines) line.set_version(at.directory().version);
          co_return Done{};
        }
        co_await GoAbove(at, wanted);
        continue;
      case UnitStatus::kNewer:
        if (Mutant(kNotRefreshed)) co_return Done{};
        co_await at.part.Refresh(at.op);
        break;
      case UnitStatus::kTorn:
        // The client that splits it may be slow.
        wanted.same = 0;
        if (++wanted.torn >= kTornUntilHelp) co_await AwaitWhole(at, wanted);
        break;
      case UnitStatus::kSplitPast: break;
    }
    if (const Status begun = BeginAnew(at, wanted); !begun.ok()) co_return begun.error();
  }
  co_return Error(ErrorCode::kContended,
                  fmt::format("a bucket changed {} times while it was read; retry later", kMostAttempts));
}

// From the unit of the newest version. A client that splits a unit has read the version in the root, and
// writes the new unit before the old one. So the trip after a READ that showed a unit to be newer than the
// directory, or to be split past the number, finds a newer directory or a new unit that decides. If nothing
// has changed time and again, no client wrote this.
Status UnitReader::BeginAnew(Access at, Wanted& wanted) {
  const Beginning now{
      .unit = wanted.unit, .version = wanted.lines[0].version(), .progress = at.directory().Progress()};
  wanted.same = now == wanted.last ? wanted.same + 1 : 0;
  wanted.last = now;
  if (wanted.same == kSameUntilDamaged) return NeverDecides(at.part, wanted.unit, now.version);
  wanted.level = at.directory().version;
  at.op.CountRetry();
  return OkStatus();
}

// One trip, with whatever else may decide.
Task<UnitReader::Look> UnitReader::LookAtUnit(Access at, Wanted& wanted) {
  const Partition& part = at.part;
  wanted.unit = UnitOf(at.shape(), wanted.number, wanted.level);
  const bool newest = wanted.level == at.directory().version;
  const FarAddr unit_at = AddressOf(part, wanted.candidate, wanted.unit);
  const std::optional<uint64_t> moved = newest ? NewUnitOf(part, wanted.number) : std::nullopt;
  if (moved.has_value() && !Mutant(kChildNotRead)) {
    Line first;
    co_await at.op.InOrder(Read(unit_at, BytesOf(wanted.lines)),
                           Read(AddressOf(part, wanted.candidate, *moved), BytesOf(first)));
    // INVARIANT shard/7: the new unit decides as soon as it has a version; then the resize is past its
    // announcement.
    if (first.version() == 0) co_return Look::kClassify;
    co_await at.part.Refresh(at.op);
    co_return Look::kAgain;
  }
  const uint64_t above = UnitAbove(at.shape(), wanted.number, wanted.level);
  if (!newest || above == wanted.unit) {
    co_await at.op.InOrder(Read(unit_at, BytesOf(wanted.lines)));
    co_return Look::kClassify;
  }
  // It may not be split yet; then the unit above decides, as a rule, and it is here already.
  std::array<Line, kMostLines> lines_above;
  const std::span<Line> read_above = std::span(lines_above).first(wanted.lines.size());
  co_await at.op.InOrder(Read(unit_at, BytesOf(wanted.lines)),
                         Read(AddressOf(part, wanted.candidate, above), BytesOf(read_above)));
  const bool decided = Classify(part, wanted.number, wanted.unit, wanted.lines) == UnitStatus::kAbove &&
                       Classify(part, wanted.number, above, read_above) == UnitStatus::kDecides;
  if (!decided || Mutant(kUnsplitIsEmpty)) co_return Look::kClassify;
  std::copy(read_above.begin(), read_above.end(), wanted.lines.begin());
  wanted.unit = above;
  co_return Look::kDecided;
}

Task<Done> UnitReader::GoAbove(Access at, Wanted& wanted) {
  wanted.level = co_await NearestAbove(at, wanted);
  if (UnitOf(at.shape(), wanted.number, wanted.level) == wanted.unit)
    co_return NeverWritten(at.part, wanted.unit);
  co_return Done{};
}

// The version below the level whose unit is the first above that has been written. Nearly always the next
// one; a table that went several versions by one resize has units that are far behind, so one trip looks at
// all that is above.
Task<uint32_t> UnitReader::NearestAbove(Access at, const Wanted& wanted) {
  const Shape& shape = at.shape();
  uint32_t level = wanted.level;
  std::vector<uint32_t> levels;
  for (uint64_t unit = UnitOf(shape, wanted.number, level); level > 1; --level) {
    if (UnitOf(shape, wanted.number, level - 1) == unit) continue;
    unit = UnitOf(shape, wanted.number, level - 1);
    levels.push_back(level - 1);
  }
  if (levels.empty()) co_return 1u;
  if (levels.size() == 1) co_return levels.front();
  std::vector<Line> first(levels.size());
  fabric::Batch trip(at.op, fabric::Order::kInOrder);
  for (size_t i = 0; i < levels.size(); ++i) {
    const uint64_t unit = UnitOf(shape, wanted.number, levels[i]);
    trip.Add(Read(AddressOf(at.part, wanted.candidate, unit), BytesOf(first[i])));
  }
  co_await trip;
  for (size_t i = 0; i < levels.size(); ++i) {
    if (first[i].version() != 0) co_return levels[i];
  }
  co_return levels.back();
}

// Waits for, or finishes, the split that keeps the unit torn.
Task<Done> UnitReader::AwaitWhole(Access at, Wanted& wanted) {
  const bool is_new = std::any_of(wanted.lines.begin(), wanted.lines.end(),
                                  [](const Line& line) { return line.version() == 0; });
  co_await locks_.AwaitSplit(at, wanted.unit, is_new);
  wanted.torn = 0;
  if (++wanted.helped_in_vain == kMostHelps) co_return HalfSplitForever(at.part, wanted.unit);
  co_return Done{};
}

}  // namespace farside::index::shard
