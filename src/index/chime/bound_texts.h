// The texts of fences and pivots. With keys=bytes a bound of more than 8 bytes stands in a block of its own;
// the client remembers the bounds that it has READ, within a share of the bytes that inner nodes may take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/key.h"
#include "index/chime/layout.h"
#include "index/chime/table_context.h"

namespace farside::index::chime {

class BoundTexts {
 public:
  static constexpr uint64_t kForgotten = ~uint64_t{0};  // as `clears`: the text is not remembered

  explicit BoundTexts(const TableContext& table) : table_(table) {}

  // How often all texts were forgotten: at the same moments as the inner nodes.
  uint64_t clears() const { return clears_; }
  // The whole bound, by a READ of its block unless its text is known. `clears`: of before the node was READ
  // that names the bound. If there was a Clear since, the text is not remembered (chime/8).
  Task<Bound> Resolve(fabric::Op& op, uint64_t prefix, BoundRef ref, uint64_t clears);
  Task<Bound> FenceOf(fabric::Op& op, const Header& header, uint64_t clears) {
    return Resolve(op, header.fence_prefix, BoundRef(header.fence_ref), clears);
  }
  // Whether the key is below the fence of a node, by what the header and the client know of the fence. Empty:
  // it takes IsBelowFence, a coroutine that may READ.
  std::optional<bool> IsBelowKnownFence(const Key& key, const Header& header) const {
    if (BoundRef(header.fence_ref).infinite()) return true;
    if (key.prefix != header.fence_prefix) return key.prefix < header.fence_prefix;
    return IsBelowKnownText(key, BoundRef(header.fence_ref));
  }
  Task<bool> IsBelowFence(fabric::Op& op, Key key, Header header, uint64_t clears);
  // The fence of a node, if it takes no READ.
  std::optional<Bound> KnownFence(const Header& header) const {
    return Known(header.fence_prefix, BoundRef(header.fence_ref));
  }

  void Clear();
  uint64_t bytes() const { return bytes_; }

 private:
  // Of a fence with the key's prefix.
  std::optional<bool> IsBelowKnownText(const Key& key, BoundRef ref) const;
  std::optional<Bound> Known(uint64_t prefix, BoundRef ref) const;
  void Remember(BoundRef ref, std::string_view text);

  const TableContext& table_;
  // By the word of the reference. Forgotten together with the inner nodes (chime/8).
  std::unordered_map<uint64_t, std::string> texts_;
  uint64_t bytes_ = 0;
  uint64_t clears_ = 0;
};

}  // namespace farside::index::chime
