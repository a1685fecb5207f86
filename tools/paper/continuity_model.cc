#include "tools/paper/continuity_model.h"

#include <bit>
#include <utility>

namespace farside::tools::paper {

using index::continuity::Home;
using index::continuity::HomeOf;
using index::continuity::kBucketSlots;
using index::continuity::kFirstGroup;
using index::continuity::kGroupBits;
using index::continuity::kGroupSlots;
using index::continuity::kSharedSlots;

namespace {

// As in handlers.cc.
constexpr uint32_t kMovedByChange = 2;
constexpr uint32_t kMovedByCall = 32;

}  // namespace

ContinuityModel::ContinuityModel(uint64_t pairs, uint32_t every, bool grows)
    : every_(every),
      grows_(grows),
      shape_(pairs, kBucketSlots, kSharedSlots, kGroupSlots, every),
      current_(Empty(pairs)) {}

ContinuityModel::Table ContinuityModel::Empty(uint64_t pairs) const {
  Table table;
  table.pairs.resize(pairs);
  if (grows_) table.hashes.resize(pairs);
  return table;
}

bool ContinuityModel::Insert(uint64_t hash) {
  while (!PlaceAnywhere(hash)) {
    if (!grows_) return false;
    if (growing()) {
      MoveSome(kMovedByCall);
      continue;
    }
    growths_.push_back(now());
    moved_ = 0;
    next_ = Empty(2 * current_.pairs.size());
  }
  ++records_;
  if (growing()) MoveSome(kMovedByChange);
  return true;
}

bool ContinuityModel::PlaceAnywhere(uint64_t hash) {
  const uint64_t number = HomeOf(hash, current_.pairs.size()).pair;
  if (growing() && !current_.pairs[number].moved) {
    if (Place(current_, hash, false)) return true;
    Move(number);
  }
  return Place(growing() ? next_ : current_, hash, true);
}

bool ContinuityModel::Place(Table& table, uint64_t hash, bool may_add) {
  const Home home = HomeOf(hash, table.pairs.size());
  Pair& pair = table.pairs[home.pair];
  std::optional<uint32_t> slot = FreeSlot(pair, home.odd);
  if (!slot.has_value() && may_add && MayHaveGroup(table, pair)) {
    pair.group = true;
    ++table.groups;
    slot = kFirstGroup;
  }
  if (!slot.has_value()) return false;
  Put(table, home.pair, *slot, hash);
  return true;
}

bool ContinuityModel::MayHaveGroup(const Table& table, const Pair& pair) const {
  if (pair.group || every_ == 0) return false;
  return table.groups < table.pairs.size() / every_ + (table.pairs.size() % every_ != 0 ? 1 : 0);
}

std::optional<uint32_t> ContinuityModel::FreeSlot(const Pair& pair, bool odd) const {
  const uint32_t free = shape_.SlotsOf(odd) & ~pair.bits;
  const uint32_t in_segment = free & ~kGroupBits;
  if (in_segment != 0)
    return static_cast<uint32_t>(odd ? 31 - std::countl_zero(in_segment) : std::countr_zero(in_segment));
  if (!pair.group || free == 0) return std::nullopt;
  return static_cast<uint32_t>(std::countr_zero(free));
}

void ContinuityModel::Put(Table& table, uint64_t number, uint32_t slot, uint64_t hash) const {
  table.pairs[number].bits |= uint32_t{1} << slot;
  if (grows_) table.hashes[number][slot] = hash;
}

// Records stay in their places; those of the group get places in the pair where there are free ones.
void ContinuityModel::Move(uint64_t number) {
  Pair& from = current_.pairs[number];
  for (uint32_t left = from.bits; left != 0; left &= left - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(left));
    const uint64_t hash = current_.hashes[number][slot];
    const Home home = HomeOf(hash, next_.pairs.size());
    Pair& to = next_.pairs[home.pair];
    std::optional<uint32_t> place = slot;
    if (slot >= kFirstGroup) {
      Pair without_group = to;
      without_group.group = false;
      place = FreeSlot(without_group, home.odd);
      if (!place.has_value()) {
        place = slot;
        if (!to.group) ++next_.groups;
        to.group = true;
      }
    }
    Put(next_, home.pair, *place, hash);
  }
  from.moved = true;
}

void ContinuityModel::MoveSome(uint32_t pairs) {
  for (; pairs > 0 && moved_ < current_.pairs.size(); --pairs, ++moved_) {
    if (!current_.pairs[moved_].moved) Move(moved_);
  }
  if (moved_ < current_.pairs.size()) return;
  current_ = std::exchange(next_, Table());
}

}  // namespace farside::tools::paper
