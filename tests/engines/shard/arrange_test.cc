// What a split leaves in its bucket, however often clients that write it die.
#include "index/shard/arrange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/random.h"

namespace farside::index::shard {
namespace {

using Lines = std::array<LineEntries, kMostLines>;
using Written = std::array<bool, kMostLines>;

Entry EntryOf(uint64_t number) { return Entry::Of(number * pool::kLine, pool::kLine, number % 7); }

// An old bucket of so many lines: entries that stay, and where. What moves, or was deleted, is left out.
Lines DrawOwn(Random& random, size_t lines) {
  Lines own;
  const size_t used = random.Below(lines * kSlotsPerLine + 1);
  const uint64_t stays = random.Below(101);
  for (size_t slot = 0; slot < used; ++slot) {
    if (random.Below(100) < stays) own[slot / kSlotsPerLine].Add(EntryOf(slot + 1));
  }
  return own;
}

// A bucket in far memory, of which some lines are written already.
struct Far {
  Lines lines;
  Written written{};

  std::map<uint64_t, int> Count() const {
    std::map<uint64_t, int> count;
    for (const LineEntries& line : lines) {
      for (size_t i = 0; i < line.count; ++i) ++count[line.entries[i].offset()];
    }
    return count;
  }
  // As a client that finishes the split sees it: what is in a written line already is not taken from the
  // others.
  Lines Own() const {
    Lines own;
    for (size_t line = 0; line < kMostLines; ++line) {
      for (size_t i = 0; i < lines[line].count; ++i) {
        const Entry entry = lines[line].entries[i];
        if (written[line] || !InWritten(entry)) own[line].Add(entry);
      }
    }
    return own;
  }
  bool InWritten(Entry entry) const {
    for (size_t line = 0; line < kMostLines; ++line) {
      const auto begin = lines[line].entries.begin();
      const auto end = begin + static_cast<ptrdiff_t>(lines[line].count);
      if (written[line] && std::find(begin, end, entry) != end) return true;
    }
    return false;
  }
};

// The lines that are to be written, in an order in which they may take effect.
std::vector<size_t> DrawOrder(Random& random, const Far& far, const Arrangement& arranged, size_t lines) {
  std::vector<size_t> order;
  for (const auto& [first, end] : {std::pair(size_t{0}, arranged.front), std::pair(arranged.front, lines)}) {
    const auto begin = static_cast<ptrdiff_t>(order.size());
    for (size_t line = first; line < end; ++line) {
      if (!far.written[line]) order.push_back(line);
    }
    for (size_t i = order.size(); i > static_cast<size_t>(begin) + 1; --i) {
      const size_t other = static_cast<size_t>(begin) + random.Below(i - static_cast<size_t>(begin));
      std::swap(order[i - 1], order[other]);
    }
  }
  return order;
}

TEST(ShardArrange, WritersDieBetweenAnyTwoLines_NothingIsLostAndNoGapIsLeft) {
  // Given buckets of all sizes, of whose entries some stay, and perhaps one that is added
  // When a client that writes the lines dies after some of them, in any order that two WRITEs allow, and so
  // do some of clients that carry on
  // Expect at every moment each entry that stays; in the end each once, one behind the other
  for (uint64_t seed = 1; seed <= 20'000; ++seed) {
    Random random(seed);
    const size_t lines = size_t{1} << random.Below(4);
    Far far{.lines = DrawOwn(random, lines)};
    const std::map<uint64_t, int> stays = far.Count();
    const Entry added = EntryOf(1000);
    bool adds = random.Below(2) == 0 && stays.size() < lines * kSlotsPerLine;
    for (bool over = false; !over; adds = false) {
      const Arrangement arranged = Arrange(far.Own(), far.written, adds ? &added : nullptr);
      const std::vector<size_t> order = DrawOrder(random, far, arranged, lines);
      const size_t done = random.Below(3) == 0 ? order.size() : random.Below(order.size() + 1);
      for (size_t i = 0; i < done; ++i) {
        far.lines[order[i]] = arranged.lines[order[i]];
        far.written[order[i]] = true;
        const std::map<uint64_t, int> now = far.Count();
        for (const auto& [offset, once] : stays)
          ASSERT_TRUE(now.contains(offset)) << "seed " << seed << ", line " << order[i];
      }
      over = done == order.size();
    }
    std::map<uint64_t, int> end = far.Count();
    end.erase(added.offset());
    ASSERT_EQ(end, stays) << "seed " << seed;
    bool unused = false;
    for (size_t line = 0; line < lines; ++line) {
      ASSERT_FALSE(unused && far.lines[line].count > 0) << "seed " << seed << ", line " << line;
      unused |= far.lines[line].count < kSlotsPerLine;
    }
  }
}

TEST(ShardArrange, WhatIsAddedIsTheLastOfAll) {
  // Given buckets of all sizes with room for one more
  // When one is added
  // Expect it behind all others
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    Far far{.lines = DrawOwn(random, kMostLines)};
    const size_t before = far.Count().size();
    if (before == kMostLines * kSlotsPerLine) continue;
    const Entry added = EntryOf(1000);
    const Arrangement arranged = Arrange(far.lines, far.written, &added);
    const LineEntries& last = arranged.lines[before / kSlotsPerLine];
    ASSERT_EQ(last.count, before % kSlotsPerLine + 1) << "seed " << seed;
    EXPECT_EQ(last.entries[last.count - 1], added) << "seed " << seed;
  }
}

}  // namespace
}  // namespace farside::index::shard
