#include "check/exhaustive/intern.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/hash.h"

namespace farside::check::exhaustive {
namespace {

constexpr size_t kFirstSlots = 1024;
constexpr uint64_t kNoKey = ~uint64_t{0};

uint64_t Mix(uint64_t key) {
  key *= 0x9e3779b97f4a7c15;
  return key ^ (key >> 32);
}

}  // namespace

Interner::Interner() : buckets_(kFirstSlots, 0) {}

uint32_t Interner::Intern(std::span<const std::byte> bytes) {
  const uint64_t hash = Hash64(bytes);
  const size_t mask = buckets_.size() - 1;
  size_t at = hash & mask;
  for (; buckets_[at] != 0; at = (at + 1) & mask) {
    const uint32_t id = buckets_[at] - 1;
    if (entries_[id].hash == hash && std::ranges::equal((*this)[id], bytes)) return id;
  }
  const auto id = static_cast<uint32_t>(entries_.size());
  buckets_[at] = id + 1;
  entries_.push_back({.hash = hash, .begin = bytes_.size(), .size = bytes.size()});
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  if (entries_.size() * 2 > buckets_.size()) Grow();
  return id;
}

std::span<const std::byte> Interner::operator[](uint32_t id) const {
  const Entry& entry = entries_[id];
  return std::span(bytes_).subspan(entry.begin, entry.size);
}

void Interner::Grow() {
  const size_t mask = buckets_.size() * 2 - 1;
  buckets_.assign(mask + 1, 0);
  for (uint32_t id = 0; id < entries_.size(); ++id) {
    size_t at = entries_[id].hash & mask;
    while (buckets_[at] != 0) at = (at + 1) & mask;
    buckets_[at] = id + 1;
  }
}

NumberMap::NumberMap() : slots_(kFirstSlots, Slot{kNoKey, 0}) {}

size_t NumberMap::SlotOf(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  size_t at = Mix(key) & mask;
  while (slots_[at].key != key && slots_[at].key != kNoKey) at = (at + 1) & mask;
  return at;
}

const uint32_t* NumberMap::Find(uint64_t key) const {
  const Slot& slot = slots_[SlotOf(key)];
  return slot.key == key ? &slot.value : nullptr;
}

void NumberMap::Insert(uint64_t key, uint32_t value) {
  assert(key != kNoKey && Find(key) == nullptr);
  if ((size_ + 1) * 2 > slots_.size()) {
    std::vector<Slot> old(slots_.size() * 2, Slot{kNoKey, 0});
    std::swap(slots_, old);
    for (const Slot& slot : old) {
      if (slot.key != kNoKey) slots_[SlotOf(slot.key)] = slot;
    }
  }
  slots_[SlotOf(key)] = {key, value};
  ++size_;
}

HashSet::HashSet() : slots_(kFirstSlots, 0) {}

bool HashSet::Insert(uint64_t hash) {
  if (hash == 0) hash = 1;
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at] != 0) {
    if (slots_[at] == hash) return false;
    at = (at + 1) & mask;
  }
  slots_[at] = hash;
  if (++size_ * 4 > slots_.size() * 3) Grow();
  return true;
}

void HashSet::Grow() {
  std::vector<uint64_t> old(slots_.size() * 2, 0);
  std::swap(slots_, old);
  const size_t mask = slots_.size() - 1;
  for (uint64_t hash : old) {
    if (hash == 0) continue;
    size_t at = hash & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = hash;
  }
}

}  // namespace farside::check::exhaustive
