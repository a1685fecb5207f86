// A split of a unit, in memory: what was read of the old unit and of the new one, and what they become.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "index/shard/arrange.h"
#include "index/shard/bucket.h"
#include "index/shard/layout.h"

namespace farside::index::shard {

// A unit as it lies in far memory: the lines of its bucket, then its line of level 2.
using UnitLines = std::array<Line, kMostLines + 1>;

struct Split {
  Split(const Shape& a_shape, uint64_t a_unit, uint32_t a_version)
      : shape(a_shape), unit(a_unit), new_unit(a_unit + a_shape.units(a_version)), version(a_version) {
    old_bucket.unit = old_overflow.unit = a_unit;
    old_bucket.version = old_overflow.version = a_version;
  }

  std::span<Line> old_lines() { return std::span(old_bucket.lines).first(shape.lines()); }
  std::span<const Line> old_lines() const { return std::span(old_bucket.lines).first(shape.lines()); }
  std::span<Line> new_lines() { return std::span(new_bucket.lines).first(shape.lines()); }
  void TakeOld(const UnitLines& read) {
    std::copy_n(read.begin(), shape.lines(), old_bucket.lines.begin());
    old_overflow.line = read[shape.lines()];
  }
  // Whether the old unit, as read, has the version that is to be split, in all its lines.
  bool IsOfVersion() const {
    return VersionOf(old_lines()) == version && old_overflow.line.version() == version;
  }

  const Shape shape;
  const uint64_t unit;
  const uint64_t new_unit;
  const uint32_t version;  // before

  Bucket old_bucket;
  Bucket new_bucket;
  Overflow old_overflow;
  Line new_line;
  std::vector<Node> made_nodes;  // of level 3, for both
  // Lines that have the next version already, because a client died over the split, are left alone (shard/8).
  std::array<bool, kMostLines> keep_old{};
  std::array<bool, kMostLines> keep_new{};
  bool keep_old_line = false;
  bool keep_new_line = false;
  size_t front = 0;              // lines of the old bucket that are written before the others
  bool old_overflow_bit = true;  // false: it was proved that no key of the unit is in level 2 or 3
  bool new_overflow_bit = true;
  bool publishes = false;  // the draft goes along
  bool writing = false;    // something was posted that other clients may see
};

// A new entry that goes along with a split, and whether it goes to the new unit.
struct AddedEntry {
  Entry entry;
  bool moves = false;
};

// What the lines of the old bucket have that were not written with the next version.
struct Unwritten {
  std::vector<Entry> entries;
  std::vector<size_t> line_of;  // each of them
};
Unwritten UnwrittenOf(const Split& split);
// The same of levels 2 and 3.
std::vector<Entry> OverflowEntriesOf(const Split& split);

// Level 1. Lines that were written before count as they are; the rest follows from what the old unit still
// has. `tagged` are the entries with the tags that they have after the split.
void DivideBucket(Split& split, const Unwritten& unwritten, std::span<const Entry> tagged,
                  const AddedEntry* added);

}  // namespace farside::index::shard
