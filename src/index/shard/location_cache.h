// Where keys were found last, so that a search can READ the bucket and the block in one trip.
//
// INVARIANT shard/9: a block is READ on the word of this cache only if the entry was seen in its bucket in an epoch that this
// client has not published past: then the block cannot have been reused since, and what the bucket says in the same trip
// decides, in whatever order the two were sampled.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "index/shard/layout.h"

namespace farside::index::shard {

class LocationCache {
 public:
  // A power of two of entries, at least as many as asked for; 0: none.
  explicit LocationCache(uint64_t entries) : slots_(entries == 0 ? 0 : std::bit_ceil(entries)) {}

  bool enabled() const { return !slots_.empty(); }
  uint64_t bytes() const { return slots_.size() * sizeof(Location); }

  // The entry that the key with this hash had in level 1, if that was seen in `not_before` or later.
  std::optional<Entry> Find(uint64_t hash, uint64_t not_before) const {
    const Location& location = slots_[hash & (slots_.size() - 1)];
    if (location.hash != hash || !location.entry.has_block() || location.seen < not_before)
      return std::nullopt;
    return location.entry;
  }
  void Remember(uint64_t hash, Entry entry, uint64_t seen) {
    if (entry.bytes() == 0) return;  // it takes a trip to learn how large it is
    slots_[hash & (slots_.size() - 1)] = {.hash = hash, .entry = entry, .seen = seen};
  }

 private:
  struct Location {
    uint64_t hash = 0;
    Entry entry;
    uint64_t seen = 0;  // the epoch that the operation knew which saw it
  };
  std::vector<Location> slots_;
};

}  // namespace farside::index::shard
