#include "tools/paper/cuckoo_model.h"

#include <algorithm>

namespace farside::tools::paper {

CuckooModel::CuckooModel(uint64_t slots, uint32_t per_choice, uint64_t seed)
    : per_choice_(per_choice),
      buckets_(static_cast<uint32_t>(slots / per_choice)),
      random_(seed),
      slots_(uint64_t{buckets_} * per_choice, kEmpty) {}

CuckooModel::Choices CuckooModel::DrawKey() {
  const auto first = static_cast<uint32_t>(random_.Below(buckets_));
  const auto distance = static_cast<uint32_t>(random_.Below(buckets_ - 1)) + 1;
  return {first, (first + distance) % buckets_};
}

std::optional<uint64_t> CuckooModel::Put(const Choices& key, uint64_t chain) {
  for (const uint32_t bucket : key) {
    const std::optional<uint32_t> empty = EmptySlotOf(bucket);
    if (!empty.has_value()) continue;
    slots_[*empty] = key;
    ++records_;
    return 0;
  }
  visits_.clear();
  entered_.clear();
  for (const uint32_t bucket : key) Enter(bucket, kNone, 1);
  for (size_t i = 0; i < visits_.size() && visits_[i].length <= chain; ++i) {
    const uint32_t next = AlternativeOf(visits_[i].slot);
    const std::optional<uint32_t> empty = EmptySlotOf(next);
    if (empty.has_value()) {
      const uint64_t length = visits_[i].length;
      MoveAlong(static_cast<uint32_t>(i), *empty, key);
      return length;
    }
    if (entered_.size() < 2 * chain + key.size())
      Enter(next, static_cast<uint32_t>(i), visits_[i].length + 1);
  }
  return std::nullopt;
}

void CuckooModel::DeleteAny() {
  uint64_t slot = random_.Below(slots_.size());
  while (slots_[slot] == kEmpty) slot = random_.Below(slots_.size());
  slots_[slot] = kEmpty;
  --records_;
}

double CuckooModel::ShareOfFullAlternatives() const {
  uint64_t full = 0;
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot] != kEmpty && IsFull(AlternativeOf(slot))) ++full;
  }
  return records_ == 0 ? 0 : static_cast<double>(full) / static_cast<double>(records_);
}

std::optional<uint32_t> CuckooModel::EmptySlotOf(uint32_t bucket) const {
  for (uint32_t slot = bucket * per_choice_; slot < (bucket + 1) * per_choice_; ++slot) {
    if (slots_[slot] == kEmpty) return slot;
  }
  return std::nullopt;
}

void CuckooModel::Enter(uint32_t bucket, uint32_t from, uint32_t length) {
  if (std::find(entered_.begin(), entered_.end(), bucket) != entered_.end()) return;
  entered_.push_back(bucket);
  for (uint32_t slot = bucket * per_choice_; slot < (bucket + 1) * per_choice_; ++slot)
    visits_.push_back({slot, from, length});
}

void CuckooModel::MoveAlong(uint32_t last_visit, uint32_t empty_slot, const Choices& key) {
  uint32_t to = empty_slot;
  for (uint32_t at = last_visit; at != kNone; at = visits_[at].from) {
    slots_[to] = slots_[visits_[at].slot];
    to = visits_[at].slot;
  }
  slots_[to] = key;
  ++records_;
}

}  // namespace farside::tools::paper
