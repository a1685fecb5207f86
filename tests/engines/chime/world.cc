#include "tests/engines/chime/world.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "index/chime/key.h"
#include "index/chime/leaf.h"

namespace farside::index::chime {

double DetailOf(const TableStats& stats, std::string_view name) {
  for (const auto& [known, value] : stats.details) {
    if (known == name) return value;
  }
  return -1;
}

std::vector<NodePtr> NodesOf(std::span<std::byte> memory, const Shape& shape, uint64_t root_block,
                             uint32_t level) {
  std::vector<NodePtr> nodes = {NodePtr(LoadU64(memory.data() + root_block))};
  while (nodes.front().level() > level) {
    std::vector<NodePtr> below;
    for (const NodePtr node : nodes) {
      for (size_t slot = 0; slot < shape.fanout; ++slot) {
        const RawPivot pivot = LoadPivot(shape, BytesOf(memory, node) + shape.PivotOffset(slot));
        if (!pivot.child.null()) below.push_back(pivot.child);
      }
    }
    nodes = std::move(below);
  }
  return nodes;
}

Crowd CrowdFor(const Shape& shape, size_t moves, size_t fewest) {
  for (uint64_t start = 0;; start += 100) {
    Crowd crowd;
    Leaf leaf;
    for (uint64_t i = start; i < start + 100; ++i) {
      const std::string key = EightBytes(i);
      const uint64_t tag = TagOf(Hash64(key));
      Entry entry{.used = true, .key = PrefixOf(key), .value = i};
      if (!shape.inline_keys) entry.value = BlockRef::To(0, (i + 1) * 64, 64, tag).word();
      const auto path = FindRoom(shape, leaf, shape.HomeOf(tag));
      const size_t needed = path.has_value() ? path->size() - 1 : 0;
      const bool full = !path.has_value();
      if (crowd.keys.size() >= fewest && ((moves == 0 && full) || (moves > 0 && needed == moves))) {
        crowd.last = key;
        return crowd;
      }
      if (full) break;
      for (size_t step = path->size() - 1; step > 0; --step)
        leaf.Set(shape, (*path)[step], leaf.Get(shape, (*path)[step - 1]));
      leaf.Set(shape, (*path)[0], entry);
      crowd.keys.push_back(key);
    }
  }
}

}  // namespace farside::index::chime
