// The key of a search or of a change, with what follows from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "index/chime/hotspots.h"
#include "index/chime/key.h"
#include "index/chime/layout.h"
#include "index/chime/leaf.h"

namespace farside::index::chime {

struct Target {
  Target(const Shape& shape, const Hotspots& hotspots, std::string_view text, uint64_t key_hash)
      : key(text), hash(key_hash), home(shape.HomeOf(TagOf(hash))), clears(hotspots.clears()) {
    spot_id = shape.inline_keys ? Hotspots::IdOf(hash, half()) : hash;
  }
  Half half() const { return HalfOf(key.prefix); }

  Key key;
  uint64_t hash;
  size_t home;
  uint64_t spot_id = 0;  // by which the hotspots know the key
  uint64_t clears;       // of the hotspots, before anything was READ
};

// The next entry of what was READ, from the given index on, that may be the key's; `hood.size()` if there is
// none. With keys=bytes its block decides.
size_t NextCandidate(const Shape& shape, const Target& target, const Neighbourhood& hood, size_t from);
// The index of the first free entry; `hood.size()` if there is none.
size_t FirstFree(const Neighbourhood& hood);

// Whether a header, if it was READ, says that the leaf has keys of the other half: memory is damaged
// (chime/11).
inline bool Contradicts(const Shape& shape, const Header& header, const Target& target) {
  return shape.inline_keys && NodeInfo(header.info) == NodeInfo::Of(0) && HalfOf(header) != target.half();
}

}  // namespace farside::index::chime
