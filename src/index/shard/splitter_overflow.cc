// Which halves of a split unit still need the overflow bit. Both inherit it, and so would all units of a
// table that began with one full bucket. While a table is small, level 2 can be looked through for keys of
// the unit: none can come while the unit's lock is held. Searches of absent keys then take one trip again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

// The entries of a line of level 2; if there are nodes behind it, as many more as one of them has room for.
size_t ApproximateEntries(const Overflow& overflow, const Shape& shape) {
  const auto slots = std::span(overflow.line.entries).first(overflow.slots(shape));
  const auto used = std::ranges::count_if(slots, [](const Entry& entry) { return entry.has_block(); });
  return static_cast<size_t>(used) + (overflow.line.has_link() ? kNodeEntries : 0);
}

}  // namespace

Task<Done> Splitter::ProveOverflow(Access at, Split& split) {
  // Also units that other clients may be splitting to already, if a resize is announced. Taken once: other
  // operations of this client may learn of more while this one waits, but no client splits to that before
  // this one has ended (shard/5).
  const uint32_t newest = at.directory().newest;
  if (split.shape.units(newest) > kProvableUnits) co_return Done{};
  // A table that many clients fill while it waits for a resize has more keys in level 2 than are looked
  // through. The unit's own line tells that without a trip.
  const size_t of_a_line = ApproximateEntries(split.old_overflow, split.shape);
  if (of_a_line * split.shape.units(split.version) > kProvableEntries) co_return Done{};

  std::vector<Overflow> level2 = co_await ReadLevel2(at, newest);
  if (level2.empty()) co_return Done{};
  size_t expected = 0;
  for (const Overflow& overflow : level2) expected += ApproximateEntries(overflow, split.shape);
  if (expected > kProvableEntries) co_return Done{};
  std::vector<Entry> entries;
  for (Overflow& overflow : level2) {
    co_await AppendEntries(at, overflow, entries);
    if (entries.size() > kProvableEntries) co_return Done{};
  }
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

// INVARIANT shard/7: a split moves keys to a later segment, and writes there before it takes them away here.
// So if the segments are sampled one after the other, every key is seen in at least one of its places. Where
// READs have no order, the segments are read twice: a line that was split between its sample and that of the
// new one has another version the second time. Whole segments are read, since the lines lie apart.
Task<std::vector<Overflow>> Splitter::ReadLevel2(Access at, uint32_t newest) {
  const Shape& shape = at.shape();
  const uint64_t units = shape.units(newest);
  const size_t segments = shape.segments(newest);
  const size_t stride = shape.lines() + 1;
  std::vector<Line> all(units * stride);
  std::vector<Overflow> level2(units);
  const int passes = at.op.client().orders_reads() || Mutant(kOverflowProvedCarelessly) ? 1 : 2;
  for (int pass = 1; pass <= passes; ++pass) {
    Batch trip(at.op, Order::kInOrder);
    for (size_t i = 0; i < segments; ++i) {
      const size_t segment = Mutant(kOverflowProvedCarelessly) ? segments - 1 - i : i;
      const uint64_t first = shape.FirstUnit(segment);
      const uint64_t count = shape.SegmentUnits(segment);
      const std::span<Line> read = std::span(all).subspan(first * stride, count * stride);
      trip.Add(Read(at.part.BucketAt(first), BytesOf(read)));
    }
    co_await trip;
    for (uint64_t unit = 0; unit < units; ++unit) {
      const Line& line = all[unit * stride + stride - 1];
      if (pass == 2 && line.version() != level2[unit].line.version()) co_return std::vector<Overflow>();
      level2[unit].unit = unit;
      level2[unit].line = line;
    }
  }
  co_return std::move(level2);
}

Task<Done> Splitter::AppendEntries(Access at, Overflow& overflow, std::vector<Entry>& entries) {
  if (overflow.line.has_link()) co_await ReadNodes(at, overflow);
  for (size_t slot = 0; slot < overflow.slots(at.shape()); ++slot)
    entries.push_back(overflow.line.entries[slot]);
  for (const Node& node : overflow.nodes)
    entries.insert(entries.end(), node.line.entries.begin(), node.line.entries.begin() + kNodeEntries);
  std::erase_if(entries, [](const Entry& entry) { return !entry.has_block(); });
  co_return Done{};
}

}  // namespace farside::index::shard
