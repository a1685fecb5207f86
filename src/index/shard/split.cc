#include "index/shard/split.h"

#include "index/shard/mutants.h"

namespace farside::index::shard {
namespace {

// Entries one behind the other, then unused slots.
void Fill(std::span<Line> lines, std::span<const Entry> entries, uint32_t version, bool overflow) {
  for (size_t slot = 0; slot < lines.size() * kSlotsPerLine; ++slot) {
    const Entry entry = slot < entries.size() ? entries[slot].WithFlag(false) : Entry();
    lines[slot / kSlotsPerLine].entries[slot % kSlotsPerLine] = entry;
  }
  for (Line& line : lines) line.set_version(version);
  Entry& bit = lines[0].entries[kOverflowSlot];
  bit = bit.WithFlag(overflow);
}

// What stays in the old bucket, line by line, and what moves to the new one.
struct Divided {
  std::array<LineEntries, kMostLines> own;
  size_t staying = 0;
  std::vector<Entry> moved;
};

Divided Divide(const Split& split, const Unwritten& unwritten, std::span<const Entry> tagged) {
  Divided divided;
  std::vector<Entry> kept;
  for (size_t i = 0; i < split.shape.lines(); ++i) {
    if (!split.keep_old[i]) continue;
    for (const Entry& entry : split.old_bucket.lines[i].entries) {
      if (!entry.has_block()) continue;
      divided.own[i].Add(entry);
      kept.push_back(entry);
    }
  }
  divided.staying = kept.size();
  for (size_t i = 0; i < tagged.size(); ++i) {
    const Entry entry = unwritten.entries[i];
    if (Moves(entry, split.version)) {
      divided.moved.push_back(tagged[i]);
      continue;
    }
    // It may fill a gap already.
    const auto same = [&](const Entry& other) { return other.offset() == entry.offset(); };
    if (std::any_of(kept.begin(), kept.end(), same)) continue;
    divided.own[unwritten.line_of[i]].Add(tagged[i]);
    ++divided.staying;
  }
  return divided;
}

}  // namespace

Unwritten UnwrittenOf(const Split& split) {
  Unwritten unwritten;
  for (size_t i = 0; i < split.shape.lines(); ++i) {
    if (split.keep_old[i]) continue;
    for (const Entry& entry : split.old_bucket.lines[i].entries) {
      if (!entry.has_block()) continue;
      unwritten.entries.push_back(entry.WithFlag(false));
      unwritten.line_of.push_back(i);
    }
  }
  return unwritten;
}

std::vector<Entry> OverflowEntriesOf(const Split& split) {
  std::vector<Entry> entries;
  const Overflow& old = split.old_overflow;
  const auto add = [&entries](const Line& line, size_t slots) {
    for (size_t slot = 0; slot < slots; ++slot) {
      if (line.entries[slot].has_block()) entries.push_back(line.entries[slot].WithFlag(false));
    }
  };
  add(old.line, old.slots(split.shape));
  for (const Node& node : old.nodes) add(node.line, kNodeEntries);
  return entries;
}

void DivideBucket(Split& split, const Unwritten& unwritten, std::span<const Entry> tagged,
                  const AddedEntry* added) {
  const bool overflow = split.old_bucket.overflow();
  Divided divided = Divide(split, unwritten, tagged);
  if (added != nullptr && (added->moves ? divided.moved.size() : divided.staying) < split.shape.slots) {
    if (added->moves) divided.moved.push_back(added->entry);
    split.publishes = true;
  }
  const bool added_stays = split.publishes && !added->moves;
  const Arrangement arranged = Arrange(divided.own, split.keep_old, added_stays ? &added->entry : nullptr);
  split.front = arranged.front;
  const uint32_t next = split.version + 1;
  const std::span<Line> old_lines = split.old_lines();
  for (size_t i = 0; i < old_lines.size(); ++i) {
    if (split.keep_old[i]) continue;
    const LineEntries& line = arranged.lines[i];
    Fill(old_lines.subspan(i, 1), std::span(line.entries).first(line.count), next,
         i == 0 && overflow && split.old_overflow_bit);
  }
  // INVARIANT shard/4: the bit follows to the new unit.
  Bucket new_bucket;
  Fill(std::span(new_bucket.lines).first(old_lines.size()), divided.moved, next,
       overflow && split.new_overflow_bit && !Mutant(kOverflowNotPassedOn));
  for (size_t i = 0; i < old_lines.size(); ++i) {
    if (!split.keep_new[i]) split.new_bucket.lines[i] = new_bucket.lines[i];
  }
}

}  // namespace farside::index::shard
