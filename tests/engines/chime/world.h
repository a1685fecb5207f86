// Clients that have one chime table open in a simulated pool; and keys for scenarios.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "index/chime/chime.h"
#include "index/chime/key.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"
#include "tests/support/table_world.h"

namespace farside::index::chime {

using World = TableWorld;

class Member : public TableMember {
 public:
  Member(World& world, OptionMap options)
      : TableMember(world, "chime", MakeChimeEngine, std::move(options)) {}
};

// What Stats says under a name; -1 if it does not say anything.
double DetailOf(const TableStats& stats, std::string_view name);

// ---- the tree as it stands in memory, on one node --------------------------------------------------------

inline std::byte* BytesOf(std::span<std::byte> memory, NodePtr node) {
  return memory.data() + LineBits::Get(node.word()) * pool::kLine;
}
// The nodes of a level, as those above name them, in no order.
std::vector<NodePtr> NodesOf(std::span<std::byte> memory, const Shape& shape, uint64_t root_block,
                             uint32_t level);

// ---- keys for scenarios -----------------------------------------------------------------------------------

// Keys of 8 bytes that fit into one leaf, and one more for which others have to move, or for which the leaf
// is split.
struct Crowd {
  std::vector<std::string> keys;
  std::string last;
};
inline std::string EightBytes(uint64_t i) { return fmt::format("k{:07}", i); }
// `moves`: how many entries have to move for the last key; 0: there is no room for it at all.
Crowd CrowdFor(const Shape& shape, size_t moves, size_t fewest = 2);

}  // namespace farside::index::chime
