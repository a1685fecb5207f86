// Where the entries go that a split leaves in its bucket: plain words, no far memory.
//
// The lines of the old bucket are written by two WRITEs: the front ones, then the others. Lines of one WRITE
// take effect in any order, and the splitting client may die between any two of them.
//
// INVARIANT shard/7: at every moment, an entry that stays is in a line that was written, or still in its own.
// Kept by: whatever stays, stays in its line, but for what fills the gaps of front lines, and that comes from
// lines behind them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "index/shard/layout.h"

namespace farside::index::shard {

// What one line has, in order and without gaps.
struct LineEntries {
  std::array<Entry, kSlotsPerLine> entries;
  size_t count = 0;

  void Add(Entry entry) { entries[count++] = entry; }
};

struct Arrangement {
  std::array<LineEntries, kMostLines> lines;
  size_t front = 0;  // so many lines are written first
};

// `own` is what stays of each line; lines that a dead client had written are `kept`, and count as they are.
// `added`, if any, becomes the last of all: if it is lost, with the client that adds it, there is no gap.
inline Arrangement Arrange(const std::array<LineEntries, kMostLines>& own,
                           const std::array<bool, kMostLines>& kept, const Entry* added) {
  Arrangement arranged{.lines = own};
  const size_t more = added != nullptr ? 1 : 0;
  size_t total = more;
  for (const LineEntries& line : own) total += line.count;
  if (total == 0) return arranged;

  // All lines before the last one are full, and none behind it is used.
  const size_t last = (total - 1) / kSlotsPerLine;
  const size_t in_last = total - last * kSlotsPerLine - more;
  // If the last one has more than it may keep, it gives away, and so is not one of the front lines.
  const bool last_gives = own[last].count > in_last;
  arranged.front = last_gives ? last : last + 1;
  std::array<Entry, kMostLines * kSlotsPerLine> movers;
  size_t end = 0;
  const auto take = [&](size_t line) {
    const LineEntries& from = own[line];
    std::copy_n(from.entries.begin(), from.count, movers.begin() + end);
    end += from.count;
    arranged.lines[line].count = 0;
  };
  for (size_t line = last + 1; line < kMostLines; ++line) {
    if (!kept[line]) take(line);
  }
  // Behind the others: what is left of the movers, when the gaps are filled, is its own.
  if (last_gives) take(last);
  size_t next = 0;
  for (size_t line = 0; line <= last; ++line) {
    const size_t room = line == last ? in_last : kSlotsPerLine;
    LineEntries& filled = arranged.lines[line];
    while (!kept[line] && filled.count < room && next < end) filled.Add(movers[next++]);
  }
  if (added != nullptr) arranged.lines[last].Add(*added);
  return arranged;
}

}  // namespace farside::index::shard
