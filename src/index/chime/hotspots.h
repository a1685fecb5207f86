// Where a client found keys last, for keys that it finds often: the paper's hotspot buffer (section 4.3). A
// search for such a key READs one entry instead of a neighbourhood, and needs no inner nodes.
//
// A spot is a guess. The entry that is READ there counts if it has the key, compared in full: then it was the
// key's value when its line was sampled (chime/1), whatever else was READ. If it has another key, nothing
// follows: the key may stand elsewhere. As with inner nodes, a remembered leaf is still memory of this table
// (chime/8); so when the inner nodes are forgotten, the hotspots are cleared too.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bits.h"
#include "index/chime/layout.h"

namespace farside::index::chime {

// An entry that may be that of the key.
struct Spot {
  NodePtr leaf;
  size_t slot = 0;
};

// Spots stand in sets of 7, each set in one cache line, each spot with a count of its uses. In a full set a
// new key displaces the spot that was used least. Counts are halved now and then, so that a spot that was hot
// once does not stay for ever.
//
// When there is no room for the keys that are found, the buffer grows to four times its size, up to its
// bound. It is empty then, and fills again with the next searches. So clients that find few keys need little
// memory.
//
// Where spots are of no use, they are hardly used: if the buffer is crowded and fewer than one search in
// eight finds its key, only every sixteenth operation looks and remembers, until that changes.
class Hotspots {
 public:
  explicit Hotspots(uint64_t most_bytes);

  // What stands for a key's hash with keys=inline. INVARIANT chime/11: keys of different halves have
  // different fingerprints, so no spot leads to a leaf of the other half, even if hashes collide.
  static uint64_t IdOf(uint64_t hash, Half half);

  bool enabled() const { return most_sets_ > 0; }
  // Where the key with this hash (or IdOf) was found last. Counts as a use.
  std::optional<Spot> Find(uint64_t hash);
  // The key was found there by an operation that began after so many `clears`. What was found before the last
  // Clear is not remembered.
  void Remember(uint64_t hash, const Spot& spot, uint64_t clears);
  // The key is not there any more.
  void Forget(uint64_t hash);
  void Clear();
  uint64_t clears() const { return clears_; }

  uint64_t bytes() const { return sets_.size() * sizeof(Set); }
  size_t size() const { return size_; }

 private:
  // 63..48        47..42   41..36   35..0
  // fingerprint   slot     node     line     of the leaf; 0: none
  using Slot = Field<42, 6>;
  using Fingerprint = Field<48, 16>;
  static_assert(TilesWord<LineBits, NodeBits, Slot, Fingerprint>());
  static_assert(kMostSpan <= Slot::kMax + 1);

  static constexpr size_t kWays = 7;
  struct alignas(pool::kLine) Set {
    std::array<uint64_t, kWays> spots{};
    std::array<uint8_t, kWays> uses{};
    uint8_t displaced = 0;  // spots, so far; wraps around
  };
  static_assert(sizeof(Set) == pool::kLine, "one cache miss");

  // By the lower bits of the hash: the upper ones choose the home in a leaf (TagOf).
  Set& SetOf(uint64_t hash) { return sets_[(hash & 0xffff'ffff) * sets_.size() >> 32]; }
  static uint64_t FingerprintOf(uint64_t hash) { return hash >> 32 & Fingerprint::kMax; }
  // The way of the set that has the key; kWays if none.
  static size_t WayOf(const Set& set, uint64_t hash);
  static void CountUse(Set& set, size_t way);
  // The way for a key that is not in the set: a free one, or that of the spot that was used least.
  static size_t Displace(Set& set);
  bool crowded() const { return size_ >= sets_.size() * kWays * 3 / 4; }
  void Grow();
  // Whether the next operation does without hotspots.
  bool Rests();

  size_t first_sets_ = 0;
  size_t most_sets_ = 0;
  std::vector<Set> sets_;
  size_t size_ = 0;  // spots that are remembered

  uint32_t looks_ = 0;  // since the last judgement
  uint32_t uses_ = 0;   // looks that found a spot
  bool rests_ = false;  // the last judgement: hotspots are of no use
  uint32_t operations_ = 0;
  uint64_t clears_ = 0;
};

}  // namespace farside::index::chime
