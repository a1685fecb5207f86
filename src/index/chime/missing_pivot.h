// A pivot that a level may lack: the node that it names was split off, and is reached along siblings only
// (chime/7).
#pragma once

#include <cstdint>

#include "index/chime/key.h"
#include "index/chime/layout.h"

namespace farside::index::chime {

struct MissingPivot {
  uint32_t level = 0;  // of the inner node that lacks it
  Bound bound;
  BoundRef ref;
  NodePtr child;
};

}  // namespace farside::index::chime
