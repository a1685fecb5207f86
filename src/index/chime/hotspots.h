// Where a client found keys last, for those that it finds often: the paper's hotspot buffer (section 4.3). A search of such a
// key READs one entry instead of a neighbourhood, and needs no inner nodes.
//
// What is remembered is a guess. An entry that is read on its word counts if it is that of the key, compared in full: then it
// was the key's value when its line was sampled (chime/1), whichever slots of whichever leaf were read besides. If it is not,
// the guess says nothing: the key may stand elsewhere. As with inner nodes, a leaf that is remembered is still one of the
// table's (chime/8); whoever forgets inner nodes because that may have changed has to Clear these as well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bits.h"
#include "index/chime/layout.h"

namespace farside::index::chime {

// An entry that may be the key's.
struct Spot {
  NodePtr leaf;
  size_t slot = 0;
};

// Spots stand in sets of 7, a set to a cache line of the client, each with a count of its uses. A key that comes to a set that
// is full displaces the one that was used least. Counts are halved now and then: what was hot once does not stay for ever.
//
// It grows up to its bound, as keys are found that it has no room for, to four times its size; what it knew is forgotten then,
// and comes back with the next search. So clients that find few keys need little memory.
//
// Where they are of no use, they rest: if it is crowded and fewer than one search in eight finds its key, only every sixteenth
// operation looks and remembers, until that changes.
class Hotspots {
 public:
  explicit Hotspots(uint64_t most_bytes);

  // What keys=inline is to know a key by. INVARIANT chime/11: keys of different halves have different fingerprints, so nobody is
  // led to a leaf of the other half, whatever keys have hashes that are alike.
  static uint64_t IdOf(uint64_t hash, Half half);

  bool enabled() const { return most_sets_ > 0; }
  // Where the key with this hash, or IdOf, was found last. Counts as a use of it.
  std::optional<Spot> Find(uint64_t hash);
  // The key was found there, by somebody who began when there had been so many `clears`: what was found before the last one is
  // not remembered behind it.
  void Remember(uint64_t hash, const Spot& spot, uint64_t clears);
  // It is not where it was.
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
    uint8_t displaced = 0;  // spots, so far; comes round
  };
  static_assert(sizeof(Set) == pool::kLine, "one cache miss");

  // The upper bits of the hash choose the home (TagOf), so these do not.
  Set& SetOf(uint64_t hash) { return sets_[(hash & 0xffff'ffff) * sets_.size() >> 32]; }
  static uint64_t FingerprintOf(uint64_t hash) { return hash >> 32 & Fingerprint::kMax; }
  // Which way of the set has it; kWays if none.
  static size_t WayOf(const Set& set, uint64_t hash);
  static void CountUse(Set& set, size_t way);
  // The way that a key may have which the set does not know: a free one, or that of the spot that was used least.
  static size_t Displace(Set& set);
  bool crowded() const { return size_ >= sets_.size() * kWays * 3 / 4; }
  void Grow();
  // Whether the next operation does without it.
  bool Rests();

  size_t first_sets_ = 0;
  size_t most_sets_ = 0;
  std::vector<Set> sets_;
  size_t size_ = 0;  // spots that are remembered

  uint32_t looks_ = 0;  // since it was judged last, and how many found a spot
  uint32_t uses_ = 0;
  bool rests_ = false;  // it was of no use
  uint32_t operations_ = 0;
  uint64_t clears_ = 0;
};

}  // namespace farside::index::chime
