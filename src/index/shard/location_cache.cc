#include "index/shard/location_cache.h"

#include "index/shard/mutants.h"

namespace farside::index::shard {

bool Location::IsIn(const Line& line) const {
  if (Mutant(kCacheNotCompared)) return true;
  const Entry now = line.entries[slot % pool::kLine / sizeof(Entry)].WithFlag(false);
  return line.version() == version() && now == entry;
}

std::optional<Location> LocationCache::Known(const Partition& part, uint64_t hash, uint64_t epoch,
                                             bool in_order) const {
  const bool of_any_epoch = in_order || Mutant(kCacheOfAnyEpoch);
  const Location* const known = Find(hash, part.directory().version, of_any_epoch ? 0 : epoch);
  if (known == nullptr) return std::nullopt;
  return *known;
}

// Nodes of level 3 come and go with splits, so what is in them is not remembered.
void LocationCache::RememberSlot(const Partition& part, uint64_t hash, const Slot& slot, uint64_t epoch) {
  if (!enabled() || slot.version != part.directory().version || part.directory().announced) return;
  const uint64_t line = slot.at.offset / pool::kLine * pool::kLine;
  if (slot.candidate != Candidate::kLevel1 && line != part.OverflowAt(slot.unit).offset) return;
  Remember({.hash = hash,
            .entry = slot.entry.WithFlag(false),
            .slot = slot.at.offset,
            .when = Location::When(slot.version, epoch)});
}

}  // namespace farside::index::shard
