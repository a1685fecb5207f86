#include "index/chime/hotspots.h"

#include <algorithm>
#include <cassert>

#include "index/chime/mutants.h"

namespace farside::index::chime {
namespace {

constexpr size_t kFewestSets = 16;  // 1 KiB
constexpr int kGrowthShift = 2;     // to four times the size
constexpr uint8_t kMostUses = 255;

}  // namespace

// The first size is such that growing comes close to the bound.
Hotspots::Hotspots(uint64_t most_bytes)
    : first_sets_(most_bytes / sizeof(Set)), most_sets_(most_bytes / sizeof(Set)) {
  while (first_sets_ >> kGrowthShift >= kFewestSets) first_sets_ >>= kGrowthShift;
}

size_t Hotspots::WayOf(const Set& set, uint64_t hash) {
  const uint64_t fingerprint = FingerprintOf(hash);
  for (size_t way = 0; way < kWays; ++way) {
    if (Fingerprint::Get(set.spots[way]) == fingerprint && set.spots[way] != 0) return way;
  }
  return kWays;
}

void Hotspots::CountUse(Set& set, size_t way) {
  if (set.uses[way] == kMostUses) {
    for (uint8_t& uses : set.uses) uses /= 2;
  }
  ++set.uses[way];
}

std::optional<Spot> Hotspots::Find(uint64_t hash) {
  if (sets_.empty()) return std::nullopt;
  Set& set = SetOf(hash);
  const size_t way = WayOf(set, hash);
  if (way == kWays) return std::nullopt;
  CountUse(set, way);
  const uint64_t word = set.spots[way];
  return Spot{.leaf = NodePtr(word & (LineBits::kMask | NodeBits::kMask)), .slot = Slot::Get(word)};
}

void Hotspots::Remember(uint64_t hash, const Spot& spot) {
  if (!enabled()) return;
  assert(spot.leaf.is_leaf() && !spot.leaf.null());
  if (sets_.empty()) sets_.resize(first_sets_);
  const uint64_t word = Fingerprint::Set(Slot::Set(spot.leaf.word(), spot.slot), FingerprintOf(hash));
  Set* set = &SetOf(hash);
  size_t way = WayOf(*set, hash);
  if (way < kWays) {
    if (set->spots[way] != word) set->uses[way] = 1;
    set->spots[way] = word;
    return;
  }
  way = static_cast<size_t>(std::min_element(set->uses.begin(), set->uses.end()) - set->uses.begin());
  // A set may be full by chance: so not before all of them are, nearly.
  if (set->spots[way] != 0 && size_ >= sets_.size() * kWays * 3 / 4 && Grow()) {
    set = &SetOf(hash);
    way = 0;
  }
  if (set->spots[way] == 0) ++size_;
  set->spots[way] = word;
  set->uses[way] = 1;
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
}

bool Hotspots::Grow() {
  const size_t sets = sets_.size() << kGrowthShift;
  if (sets > most_sets_ && !Mutant(kHotspotsUnbounded)) return false;
  sets_ = {};  // or both would be there for a moment
  sets_.resize(sets);
  size_ = 0;
  return true;
}

}  // namespace farside::index::chime
