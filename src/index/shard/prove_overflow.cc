// Which halves of a split unit still need the overflow bit. Both inherit it, and so would all units of a
// table that began with one full bucket. While a table is small, level 2 can be looked through for keys of
// the unit: none can come while the unit's lock is held. Searches of absent keys then take one trip again.
#include <algorithm>

#include "index/shard/mutants.h"
#include "index/shard/splitter.h"

namespace farside::index::shard {

using fabric::Batch;
using fabric::Order;
using fabric::Read;

namespace {

// Tables with at most so many units, and so many keys in levels 2 and 3, are looked through.
constexpr uint64_t kProvableUnits = 256;
constexpr size_t kProvableEntries = 512;

}  // namespace

Task<Done> Splitter::ProveOverflow(Access at, Split& split) {
  std::vector<Entry> entries;
  const bool complete = co_await ReadAllOverflows(at, entries);
  if (!complete) co_return Done{};
  const std::vector<KeyHash> hashes = co_await ReadHashes(at, entries);
  const auto any_of_unit = [&](uint64_t unit) {
    return std::any_of(hashes.begin(), hashes.end(), [&](const KeyHash& hash) {
      return UnitOf(split.shape, hash.number(Candidate::kLevel1), split.version + 1) == unit;
    });
  };
  split.old_overflow_bit = any_of_unit(split.unit);
  split.new_overflow_bit = any_of_unit(split.new_unit);
  co_return Done{};
}

Task<bool> Splitter::ReadAllOverflows(Access at, std::vector<Entry>& entries) {
  // Also units that other clients may be splitting to already, if a resize is announced. Taken once: other
  // operations of this client may learn of more while this one waits, but no client splits to that before
  // this one has ended (shard/5).
  const Shape& shape = at.shape();
  const uint32_t newest = at.directory().newest;
  const uint64_t units = shape.units(newest);
  if (units > kProvableUnits) co_return false;
  // Whole segments: their lines of level 2 lie apart.
  const size_t stride = shape.lines() + 1;
  std::vector<Line> all(units * stride);
  std::vector<Line> before(units);
  std::vector<Line> lines(units);
  for (std::vector<Line>* pass : {&before, &lines}) {
    Batch trip(at.op, Order::kInOrder);
    for (size_t segment = 0; segment < shape.segments(newest); ++segment) {
      const uint64_t first = shape.FirstUnit(segment);
      const uint64_t count = shape.SegmentUnits(segment);
      const std::span<Line> read = std::span(all).subspan(first * stride, count * stride);
      trip.Add(Read(at.part.BucketAt(first), BytesOf(read)));
    }
    co_await trip;
    for (uint64_t unit = 0; unit < units; ++unit) (*pass)[unit] = all[unit * stride + stride - 1];
  }
  // A line that was split between its sample and that of the new one would hide what moved: then its version
  // has changed since the first pass.
  for (uint64_t unit = 0; unit < units; ++unit) {
    if (lines[unit].version() != before[unit].version() && !Mutant(kOverflowProvedCarelessly))
      co_return false;
    Overflow overflow;
    overflow.unit = unit;
    overflow.line = lines[unit];
    if (overflow.line.has_link()) co_await ReadNodes(at, overflow);
    for (size_t slot = 0; slot < overflow.slots(shape); ++slot)
      entries.push_back(overflow.line.entries[slot]);
    for (const Node& node : overflow.nodes)
      entries.insert(entries.end(), node.line.entries.begin(), node.line.entries.begin() + kNodeEntries);
    std::erase_if(entries, [](const Entry& entry) { return !entry.has_block(); });
    if (entries.size() > kProvableEntries) co_return false;
  }
  co_return true;
}

}  // namespace farside::index::shard
