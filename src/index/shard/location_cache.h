// Where keys were found last, so that a search can READ the entry and the block in one trip.
//
// INVARIANT shard/9: a block is READ on the word of this cache only if the entry was seen in its slot in the epoch that the
// operation holds by its pin, or later: whoever has unlinked it since has stamped it with that epoch or a later one, which
// this client does not publish past meanwhile. So the block cannot have been reused. It counts only if the slot still holds
// the entry, in a line of the version that the directory has: then the key has no other place (shard/1), and nobody is
// splitting the unit (shard/5). What the slot says decides, in whatever order the two were sampled.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "index/shard/layout.h"

namespace farside::index::shard {

struct Location {
  uint64_t hash = 0;
  Entry entry;           // without its flag
  uint64_t slot = 0;     // offset of the entry
  uint32_t version = 0;  // of the directory, and of the line
  uint64_t seen = 0;     // the epoch that the operation knew which saw it
};

class LocationCache {
 public:
  // A power of two of entries, at least as many as asked for; 0: none.
  explicit LocationCache(uint64_t entries) : locations_(entries == 0 ? 0 : std::bit_ceil(entries)) {}

  bool enabled() const { return !locations_.empty(); }
  uint64_t bytes() const { return locations_.size() * sizeof(Location); }

  // Where the key with this hash was, if that was seen in `not_before` or later, in a table of this version.
  const Location* Find(uint64_t hash, uint32_t version, uint64_t not_before) const {
    const Location& location = locations_[hash & (locations_.size() - 1)];
    const bool known = location.hash == hash && location.entry.has_block() && location.version == version;
    return known && location.seen >= not_before ? &location : nullptr;
  }
  void Remember(const Location& location) {
    if (location.entry.bytes() == 0) return;  // it takes a trip to learn how large it is
    locations_[location.hash & (locations_.size() - 1)] = location;
  }

 private:
  std::vector<Location> locations_;
};

}  // namespace farside::index::shard
