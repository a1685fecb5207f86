// Where keys were found last, so that a search can READ the entry and the block in one trip.
//
// INVARIANT shard/9: a block that is READ on the word of this cache counts only if its slot still holds the
// entry, in a line of the version that the directory has: then the key has no other place (shard/1), and no
// client is splitting the unit (shard/5). And the block must be sampled while it is the entry's. Where READs
// are in order (fabric/12) that is so, because the line is sampled first: at that moment the block was
// reachable, and the pin, which is older, keeps it from being reused. Where they are not, the entry must have
// been seen in its slot in the epoch that the operation holds by its pin, or later: a client that has
// unlinked the block since has stamped it with that epoch or a later one, and this client does not publish
// past it meanwhile.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bits.h"
#include "index/shard/bucket.h"
#include "index/shard/layout.h"
#include "index/shard/partition.h"
#include "pool/region/layout.h"

namespace farside::index::shard {

struct Location {
  using Version = Field<0, 8>;  // of the directory, and of the line
  using Seen = Field<8, 56>;    // the epoch that the operation knew which saw it
  static_assert(TilesWord<Version, Seen>() && kMostVersion <= Version::kMax);
  static constexpr uint64_t When(uint32_t version, uint64_t seen) {
    return Version::Set(Seen::Set(0, seen & Seen::kMax), version);
  }

  uint64_t hash = 0;
  Entry entry;        // without its flag
  uint64_t slot = 0;  // offset of the entry
  uint64_t when = 0;

  uint32_t version() const { return static_cast<uint32_t>(Version::Get(when)); }
  uint64_t seen() const { return Seen::Get(when); }
  // Whether the line, as read, still has the entry.
  bool IsIn(const Line& line) const;
};
static_assert(sizeof(Location) == 32);

// Locations stand in sets of two, the latest first: the third key of a set displaces the one that was not
// used for longest.
class LocationCache {
 public:
  // A power of two of locations, at least as many as asked for; 0: none.
  explicit LocationCache(uint64_t locations)
      : sets_(locations == 0 ? 0 : std::bit_ceil((locations + kWays - 1) / kWays)) {}

  bool enabled() const { return !sets_.empty(); }
  uint64_t bytes() const { return sets_.size() * sizeof(Set); }

  // Where the key was, if a search that holds this epoch may rely on it (shard/9). `in_order`: its READs are.
  std::optional<Location> Known(const Partition& part, uint64_t hash, uint64_t epoch, bool in_order) const;
  // The key was found in this slot, under this epoch.
  void RememberSlot(const Partition& part, uint64_t hash, const Slot& slot, uint64_t epoch);
  // A location was found to be right once more.
  void Confirm(Location location, uint64_t epoch) {
    location.when = Location::When(location.version(), epoch);
    Remember(location);
  }

  // Where the key with this hash was, if that was seen in `not_before` or later, in a table of this version.
  const Location* Find(uint64_t hash, uint32_t version, uint64_t not_before) const {
    for (const Location& location : SetOf(hash)) {
      if (location.hash != hash || !location.entry.has_block()) continue;
      return location.version() == version && location.seen() >= not_before ? &location : nullptr;
    }
    return nullptr;
  }
  // Asks for the memory that Find will look at.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&SetOf(hash)); }
  void Remember(const Location& location) {
    if (location.entry.bytes() == 0) return;  // it takes a trip to learn how large it is
    Set& set = SetOf(location.hash);
    if (set[0].hash != location.hash) set[1] = set[0];
    set[0] = location;
  }

 private:
  static constexpr size_t kWays = 2;
  struct alignas(pool::kLine) Set : std::array<Location, kWays> {};
  static_assert(sizeof(Set) == pool::kLine, "one cache miss");

  const Set& SetOf(uint64_t hash) const { return sets_[hash & (sets_.size() - 1)]; }
  Set& SetOf(uint64_t hash) { return sets_[hash & (sets_.size() - 1)]; }

  std::vector<Set> sets_;
};

}  // namespace farside::index::shard
