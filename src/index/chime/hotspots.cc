#include "index/chime/hotspots.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "index/chime/mutants.h"

namespace farside::index::chime {
namespace {

constexpr size_t kFewestSets = 16;  // 1 KiB
constexpr int kGrowthShift = 2;     // to four times the size
constexpr uint8_t kMostUses = 255;
// After so many displaced spots the counts of a set are halved. With fewer, hot keys are displaced by chance;
// with more, keys that are hot no more stay for long.
constexpr uint8_t kDisplacedUntilHalved = 64;
// After so many looks, hotspots are of use if at least one look of so many found a spot.
constexpr uint32_t kLooksUntilJudged = 4096;
constexpr uint32_t kLooksPerUse = 8;
// If they are of no use, one operation of so many looks and remembers, to find out whether that changes.
constexpr uint32_t kOperationsPerLook = 16;

void Halve(std::span<uint8_t> uses) {
  for (uint8_t& count : uses) count -= count / 2;
}

}  // namespace

// The first size is such that growing comes close to the bound.
Hotspots::Hotspots(uint64_t most_bytes)
    : first_sets_(most_bytes / sizeof(Set)), most_sets_(most_bytes / sizeof(Set)) {
  while (first_sets_ >> kGrowthShift >= kFewestSets) first_sets_ >>= kGrowthShift;
}

uint64_t Hotspots::IdOf(uint64_t hash, Half half) {
  if (Mutant(kSpotsOfBothHalves)) return hash;
  constexpr uint64_t kBit = uint64_t{1} << 32;  // of the fingerprint
  return half == Half::kUpper ? hash | kBit : hash & ~kBit;
}

size_t Hotspots::WayOf(const Set& set, uint64_t hash) {
  const uint64_t fingerprint = FingerprintOf(hash);
  for (size_t way = 0; way < kWays; ++way) {
    if (Fingerprint::Get(set.spots[way]) == fingerprint && set.spots[way] != 0) return way;
  }
  return kWays;
}

void Hotspots::CountUse(Set& set, size_t way) {
  if (set.uses[way] == kMostUses) Halve(set.uses);
  ++set.uses[way];
}

// Among spots that were used equally often, in turn: otherwise the same way would be displaced again and
// again, and no new key would stay long enough to be used twice.
size_t Hotspots::Displace(Set& set) {
  size_t least = set.displaced % kWays;
  for (size_t i = 1; i < kWays && set.uses[least] > 0; ++i) {
    const size_t way = (set.displaced + i) % kWays;
    if (set.uses[way] < set.uses[least]) least = way;
  }
  if (set.spots[least] != 0 && ++set.displaced % kDisplacedUntilHalved == 0) Halve(set.uses);
  return least;
}

// Where all keys are used equally often, remembering a few of them only costs cache misses. As long as there
// is room, the keys may just not have been found yet.
bool Hotspots::Rests() {
  if (looks_ == kLooksUntilJudged) {
    rests_ = crowded() && uses_ * kLooksPerUse < looks_;
    looks_ = uses_ = 0;
  }
  return rests_ && ++operations_ % kOperationsPerLook != 0;
}

std::optional<Spot> Hotspots::Find(uint64_t hash) {
  if (sets_.empty() || Rests()) return std::nullopt;
  ++looks_;
  Set& set = SetOf(hash);
  const size_t way = WayOf(set, hash);
  if (way == kWays) return std::nullopt;
  ++uses_;
  CountUse(set, way);
  const uint64_t word = set.spots[way];
  return Spot{.leaf = NodePtr(word & (LineBits::kMask | NodeBits::kMask)), .slot = Slot::Get(word)};
}

void Hotspots::Remember(uint64_t hash, const Spot& spot, uint64_t clears) {
  if (!enabled() || clears != clears_) return;
  if (rests_ && operations_ % kOperationsPerLook != 0) return;
  assert(spot.leaf.is_leaf() && !spot.leaf.null());
  if (sets_.empty()) sets_.resize(first_sets_);
  const uint64_t word = Fingerprint::Set(Slot::Set(spot.leaf.word(), spot.slot), FingerprintOf(hash));
  size_t way = WayOf(SetOf(hash), hash);
  if (way == kWays) {
    way = Displace(SetOf(hash));
    // A set may be full by chance, so it grows only when nearly all sets are.
    if (SetOf(hash).spots[way] != 0 && crowded()) Grow();
  }
  Set& set = SetOf(hash);
  if (set.spots[way] == 0) ++size_;
  if (set.spots[way] != word) set.uses[way] = 1;
  set.spots[way] = word;
}

void Hotspots::Forget(uint64_t hash) {
  if (sets_.empty()) return;
  Set& set = SetOf(hash);
  const size_t way = WayOf(set, hash);
  if (way == kWays) return;
  set.spots[way] = 0;
  set.uses[way] = 0;
  --size_;
}

void Hotspots::Clear() {
  std::fill(sets_.begin(), sets_.end(), Set{});
  size_ = 0;
  ++clears_;
}

void Hotspots::Grow() {
  const size_t sets = sets_.size() << kGrowthShift;
  if (sets > most_sets_ && !Mutant(kHotspotsUnbounded)) return;
  sets_ = {};  // first, so that old and new sets do not exist at once
  sets_.resize(sets);
  size_ = 0;
}

}  // namespace farside::index::chime
