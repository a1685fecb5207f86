#include "index/shard/location_cache.h"

#include <algorithm>
#include <new>

#include "base/hash.h"
#include "base/random.h"
#include "index/shard/mutants.h"

namespace farside::index::shard {

using fabric::FarAddr;

namespace {

// Of hashes that other clients cannot know: clients differ in when they open a table.
uint64_t SeedOf(pool::PoolClient& pool) {
  uint64_t state =
      static_cast<uint64_t>(pool.client().Now().count()) ^ uint64_t { Number(pool.client().id()) } << 32;
  return SplitMix64(state);
}

// Where the slots of the candidate begin, in this unit.
FarAddr SlotsOf(const Partition& part, Candidate candidate, uint64_t unit) {
  return candidate == Candidate::kLevel1 ? part.BucketAt(unit) : part.OverflowAt(unit);
}

}  // namespace

bool Location::IsIn(const Line& line) const {
  if (Mutant(kCacheNotCompared)) return true;
  return line.version() == slot.version && EntryIn(line).WithFlag(false) == slot.entry.WithFlag(false);
}

LocationCache::LocationCache(pool::PoolClient& pool, uint64_t locations) : pool_(pool), seed_(SeedOf(pool)) {
  if (locations == 0) return;
  const uint64_t sets = std::bit_ceil((locations + kWays - 1) / kWays);
  size_t room = (sets + 1) * sizeof(Set);
  memory_.reset(std::calloc(room, 1));
  if (memory_ == nullptr) throw std::bad_alloc();
  void* first = memory_.get();
  sets_ = static_cast<Set*>(std::align(alignof(Set), sets * sizeof(Set), first, room));
  mask_ = sets - 1;
}

uint64_t LocationCache::NameOf(std::string_view key) const { return Hash64(key, seed_); }

size_t LocationCache::WayOf(const Set& set, uint64_t name) {
  size_t way = 0;
  while (way < kWays && (set.keys[way] != name || set.places[way] == 0)) ++way;
  return way;
}

std::optional<Location> LocationCache::Find(const KeyAccess& at) const {
  const Set& set = SetOf(at.hash.hash());
  const size_t way = WayOf(set, NameOf(at.key));
  if (way == kWays) return std::nullopt;
  const uint64_t place = set.places[way];
  const auto version = static_cast<uint32_t>(Place::Version::Get(place));
  if (version != at.directory().version && !Mutant(kRememberedOfAnyVersion)) return std::nullopt;
  const auto candidate = static_cast<Candidate>(Place::OfCandidate::Get(place));
  const uint64_t unit = at.unit(candidate, version);
  const Entry entry = Entry(Place::Block::Get(place))
                          .WithTag(at.tag(candidate, version))
                          .WithFlag(Place::Flag::Get(place) != 0);
  const FarAddr slot_at = SlotsOf(at.part, candidate, unit) + Place::Number::Get(place) * sizeof(Entry);
  return Location{
      .slot = {.candidate = candidate, .unit = unit, .version = version, .at = slot_at, .entry = entry},
      .seen = set.seen(way)};
}

std::optional<Location> LocationCache::FindForLook(const KeyAccess& at, const pool::PoolClient::Pin& pin,
                                                   bool in_order) const {
  const std::optional<Location> known = Find(at);
  if (!known.has_value() || in_order || IsHeld(*known, pin) || Mutant(kCacheOfAnyEpoch)) return known;
  return std::nullopt;
}

bool LocationCache::MayChangeUnseen(const KeyAccess& at, const Location& known,
                                    const pool::PoolClient::Pin& pin) {
  if (at.directory().announced) return Mutant(kRememberedWhileAnnounced);
  if (known.slot.version != at.directory().version) return Mutant(kRememberedOfAnyVersion);
  return IsHeld(known, pin) || Mutant(kRememberedOfAnyAge);
}

// What it takes a trip to learn the size of is not remembered; nor what is in nodes of level 3, which come
// and go with splits.
void LocationCache::Remember(const KeyAccess& at, const Slot& slot, const pool::PoolClient::Pin& pin) {
  if (!enabled() || slot.entry.bytes() == 0) return;
  const Directory& directory = at.directory();
  if (slot.version != directory.version || directory.announced) return;
  if (slot.unit != at.unit(slot.candidate, slot.version)) return;
  const uint64_t first = SlotsOf(at.part, slot.candidate, slot.unit).offset;
  const uint64_t slots = slot.candidate == Candidate::kLevel1 ? at.shape().slots : at.shape().overflow_slots;
  if (slot.at.offset < first || slot.at.offset >= first + slots * sizeof(Entry)) return;

  uint64_t place = Place::Block::Set(0, Place::Block::Get(slot.entry.word()));
  place = Place::Number::Set(place, (slot.at.offset - first) / sizeof(Entry));
  place = Place::OfCandidate::Set(place, static_cast<uint64_t>(slot.candidate));
  place = Place::Version::Set(place, slot.version);
  place = Place::Flag::Set(place, slot.entry.flag() ? 1 : 0);
  // Not an epoch that was learned since: the entry was read before that.
  uint64_t seen =
      Mutant(kRememberedAsOfItsEnd) ? pool_.member(at.part.node()).known_epoch() : pin.epoch(at.part.node());
  if (seen > kMostSeen) seen = 0;

  Set& set = SetOf(at.hash.hash());
  const uint64_t name = NameOf(at.key);
  for (size_t way = std::min(WayOf(set, name), kWays - 1); way > 0; --way) set.Move(way - 1, way);
  set.places[0] = place;
  set.keys[0] = name;
  set.seen_low[0] = static_cast<uint32_t>(seen);
  set.seen_high[0] = static_cast<uint8_t>(seen >> 32);
}

void LocationCache::Forget(const KeyAccess& at) {
  if (!enabled()) return;
  Set& set = SetOf(at.hash.hash());
  const size_t way = WayOf(set, NameOf(at.key));
  if (way < kWays) set.places[way] = 0;
}

}  // namespace farside::index::shard
