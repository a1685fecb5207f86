#include "index/chime/leaf.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace farside::index::chime {

size_t HomeOf(const Shape& shape, const Entry& entry) {
  if (!shape.inline_keys) return shape.HomeOf(BlockRef(entry.value).tag());
  const std::string key = TextOf(entry.key, kPrefixBytes);
  return shape.HomeOf(TagOf(Hash64(key)));
}

size_t Leaf::Count(const Shape& shape) const {
  size_t count = 0;
  for (size_t slot = 0; slot < shape.span; ++slot) count += Get(shape, slot).used ? 1 : 0;
  return count;
}

// Breadth first from the neighbourhood: an entry may move to any other slot of its own neighbourhood. So the
// path is the shortest, and is found if there is one. (The paper's hopscotch looks forward from the home
// only, and gives up earlier.)
std::optional<std::vector<size_t>> FindRoom(const Shape& shape, const Leaf& leaf, size_t home) {
  constexpr uint8_t kUnseen = 0xff;
  constexpr uint8_t kStart = 0xfe;
  std::array<uint8_t, kMostSpan> from;
  from.fill(kUnseen);
  std::array<uint8_t, kMostSpan> queue;
  size_t head = 0;
  size_t tail = 0;
  for (size_t i = 0; i < shape.neighbourhood; ++i) {
    const size_t slot = shape.SlotAt(home, i);
    from[slot] = kStart;
    queue[tail++] = static_cast<uint8_t>(slot);
  }
  while (head < tail) {
    const size_t slot = queue[head++];
    const Entry entry = leaf.Get(shape, slot);
    if (!entry.used) {
      std::vector<size_t> path;
      for (size_t at = slot; at != kStart; at = from[at]) path.push_back(at);
      std::reverse(path.begin(), path.end());
      return path;
    }
    const size_t first = HomeOf(shape, entry);
    for (size_t i = 0; i < shape.neighbourhood; ++i) {
      const size_t next = shape.SlotAt(first, i);
      if (from[next] != kUnseen) continue;
      from[next] = static_cast<uint8_t>(slot);
      queue[tail++] = static_cast<uint8_t>(next);
    }
  }
  return std::nullopt;
}

bool Normalize(const Shape& shape, Leaf& leaf) {
  bool changed = false;
  for (size_t slot = 0; slot < shape.span; ++slot) {
    const Entry entry = leaf.Get(shape, slot);
    if (!entry.used) continue;
    bool drop = (leaf.header.leaving >> slot & 1) != 0;
    // An entry stands twice only because it was being moved; both copies are equal.
    for (size_t before = 0; before < slot && !drop; ++before) drop = leaf.Get(shape, before) == entry;
    if (!drop) continue;
    leaf.Set(shape, slot, Entry());
    changed = true;
  }
  leaf.header.leaving = 0;
  leaf.header.moves += leaf.header.moves & 1;
  return changed;
}

std::optional<Division> DivideByPrefix(const Shape& shape, const Leaf& leaf, uint64_t added) {
  std::vector<uint64_t> prefixes = {added};
  for (size_t slot = 0; slot < shape.span; ++slot) {
    if (leaf.Get(shape, slot).used) prefixes.push_back(leaf.Get(shape, slot).key);
  }
  std::sort(prefixes.begin(), prefixes.end());
  // The border between two prefixes that is nearest to the middle.
  const size_t count = prefixes.size();
  std::optional<size_t> best;
  const auto from_middle = [count](size_t i) { return i > count / 2 ? i - count / 2 : count / 2 - i; };
  for (size_t i = 1; i < count; ++i) {
    if (prefixes[i - 1] == prefixes[i]) continue;
    if (!best.has_value() || from_middle(i) < from_middle(*best)) best = i;
  }
  // A split into parts that differ too much is not worth it.
  if (!best.has_value() || from_middle(*best) > count / 4) return std::nullopt;
  Division division;
  const uint64_t border = prefixes[*best];
  division.separator =
      shape.inline_keys ? TextOf(border, kPrefixBytes)
                        : Separator(TextOf(prefixes[*best - 1], kPrefixBytes), TextOf(border, kPrefixBytes));
  for (size_t slot = 0; slot < shape.span; ++slot) {
    const Entry entry = leaf.Get(shape, slot);
    if (entry.used && entry.key >= border) division.leaving |= uint64_t{1} << slot;
  }
  return division;
}

Division DivideByKey(const Shape& shape, const Leaf& leaf, std::span<const std::string> keys,
                     std::string_view added) {
  std::vector<std::string_view> sorted = {added};
  for (size_t slot = 0; slot < shape.span; ++slot) {
    if (leaf.Get(shape, slot).used) sorted.push_back(keys[slot]);
  }
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  Division division;
  division.separator = Separator(sorted[middle - 1], sorted[middle]);
  for (size_t slot = 0; slot < shape.span; ++slot) {
    if (leaf.Get(shape, slot).used && keys[slot] >= division.separator)
      division.leaving |= uint64_t{1} << slot;
  }
  return division;
}

}  // namespace farside::index::chime
