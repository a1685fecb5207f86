// Where keys were seen last: so that a search READs the entry and the block in one trip, and a change that
// does not depend on the value takes one trip in all.
//
// INVARIANT shard/9: a block that is READ on the word of this cache counts only if its slot still holds the
// entry, in a line of the version that the directory has: then the key has no other place (shard/1), and no
// client is splitting the unit (shard/5). And the block must be sampled while it is the entry's. Where READs
// are in order (fabric/12) that is so, because the line is sampled first: at that moment the block was
// reachable, and the pin, which is older, keeps it from being reused. Where they are not, the entry must have
// been seen in its slot in the epoch that the operation holds by its pin, or later: a client that has
// unlinked the block since has stamped it with that epoch or a later one, and this client does not publish
// past it meanwhile.
//
// INVARIANT shard/11: an entry that is remembered is changed without a look only if it was seen in the epoch
// that the operation holds by its pin, or later; and its version is the directory's, and no resize is
// announced, when the trip is posted. See docs/engines/shard.md.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "base/bits.h"
#include "index/shard/bucket.h"
#include "index/shard/context.h"
#include "index/shard/layout.h"
#include "pool/client.h"
#include "pool/region/layout.h"

namespace farside::index::shard {

// A key's slot in level 1 or 2, as it was seen.
struct Location {
  Slot slot;
  uint64_t seen = 0;  // the epoch of the pin under which it was seen; 0: a long time ago

  fabric::FarAddr line_at() const {
    return fabric::FarAddr(slot.at.node, slot.at.offset / pool::kLine * pool::kLine);
  }
  fabric::FarAddr block_at() const { return fabric::FarAddr(slot.at.node, slot.entry.offset()); }
  // What the slot holds in the line, as read.
  Entry EntryIn(const Line& line) const { return line.entries[slot.at.offset % pool::kLine / sizeof(Entry)]; }
  // Whether the line, as read, still has the entry.
  bool IsIn(const Line& line) const;
};

// Locations stand in sets of three, the latest first: the fourth key of a set displaces the one that was not
// used for longest.
//
// Of a slot only its number is kept, and of an entry only the block: the unit and the tag follow from the
// key. The key itself is known by a hash of 64 bits, which is independent of the one that the table uses and
// different in each client. So a key that is taken for another one has the same value of that hash, and the
// same unit and tag besides; otherwise no slot holds the entry that is made for it.
class LocationCache {
 public:
  static constexpr size_t kWays = 3;
  static constexpr uint64_t kBytesEach = 22;  // a third of a line, rounded up
  // What a client has that was not told how many: 2 MiB, where a trip costs more than a cache miss.
  static uint64_t LocationsFor(const fabric::Client& client) {
    return client.distance() == fabric::Distance::kFar ? kWays << 15 : 0;
  }

  // At least as many locations as asked for; 0: none.
  LocationCache(pool::PoolClient& pool, uint64_t locations);

  bool enabled() const { return sets_ != nullptr; }
  uint64_t bytes() const { return enabled() ? (mask_ + 1) * sizeof(Set) : 0; }

  // Where the key was, if that was seen in a table of the version that the directory has.
  std::optional<Location> Find(const KeyAccess& at) const;
  // The same, if it may be READ under this pin together with its block (shard/9). `in_order`: the READs are.
  std::optional<Location> FindForLook(const KeyAccess& at, const pool::PoolClient::Pin& pin,
                                      bool in_order) const;
  // Whether the location was seen in the epoch that the pin holds, or later: then the entry names the block
  // that it named when it was seen, as long as its slot holds it.
  static bool IsHeld(const Location& known, const pool::PoolClient::Pin& pin) {
    return known.seen >= pin.epoch(known.slot.at.node);
  }
  // Whether the entry may be changed under this pin without a look, by a trip that is posted now (shard/11).
  static bool MayChangeUnseen(const KeyAccess& at, const Location& known, const pool::PoolClient::Pin& pin);
  // An operation under this pin has seen the key's entry in this slot, or has put it there.
  void Remember(const KeyAccess& at, const Slot& slot, const pool::PoolClient::Pin& pin);
  // The key is not there any more.
  void Forget(const KeyAccess& at);
  // Asks for the memory that Find will look at.
  void Prefetch(uint64_t hash) const { __builtin_prefetch(&SetOf(hash)); }

 private:
  // A slot, without what follows from the key.
  //   62    61..56   55..54       53..48   47..46   45..42             41..0
  //   flag  version  candidate    slot     0        size of the block  offset of the block, as in an entry
  struct Place {
    using Block = Field<0, 46>;
    using Zero = Field<46, 2>;
    using Number = Field<48, 6>;  // of the slot in its bucket, or in its line of level 2
    using OfCandidate = Field<54, 2>;
    using Version = Field<56, 6>;
    using Flag = Field<62, 1>;
    using Unused = Field<63, 1>;
    static_assert(TilesWord<Block, Zero, Number, OfCandidate, Version, Flag, Unused>());
    static_assert(kMostVersion <= Version::kMax && kMostLines * kSlotsPerLine - 1 <= Number::kMax);
    static_assert(Block::kMask == (Entry::Offset::kMask | Entry::Lines::kMask));
  };
  struct alignas(pool::kLine) Set {
    std::array<uint64_t, kWays> places;  // 0: none
    std::array<uint64_t, kWays> keys;    // hashes of them
    std::array<uint32_t, kWays> seen_low;
    std::array<uint8_t, kWays> seen_high;

    uint64_t seen(size_t way) const { return uint64_t{seen_high[way]} << 32 | seen_low[way]; }
    void Move(size_t from, size_t to) {
      places[to] = places[from];
      keys[to] = keys[from];
      seen_low[to] = seen_low[from];
      seen_high[to] = seen_high[from];
    }
  };
  static_assert(sizeof(Set) == pool::kLine, "one cache miss");
  static_assert(sizeof(Set) <= kWays * kBytesEach);
  static constexpr uint64_t kMostSeen = (uint64_t{1} << 40) - 1;

  uint64_t NameOf(std::string_view key) const;
  // The place of a key in the set; kWays: none.
  static size_t WayOf(const Set& set, uint64_t name);
  Set& SetOf(uint64_t hash) const { return sets_[hash & mask_]; }

  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  pool::PoolClient& pool_;
  const uint64_t seed_;
  uint64_t mask_ = 0;
  std::unique_ptr<void, Free> memory_;  // of the sets: zero, and not touched before it is used
  Set* sets_ = nullptr;
};

}  // namespace farside::index::shard
