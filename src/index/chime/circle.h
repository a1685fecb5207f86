// Detects circles of siblings, which damaged memory may have: by Brent's method, which remembers one node.
#pragma once

#include <cstdint>

#include "index/chime/layout.h"

namespace farside::index::chime {

class Circle {
 public:
  // The next node on the way. True: the way has been there before.
  bool Closes(NodePtr at) {
    if (at == mark_) return true;
    if (++steps_ == until_) {
      mark_ = at;
      steps_ = 0;
      until_ *= 2;
    }
    return false;
  }

 private:
  NodePtr mark_;
  uint64_t steps_ = 0;
  uint64_t until_ = 1;
};

// Of a way along siblings and heirs. An heir stands before the dead node that names it, so the way may come
// to where it has been before; but it never comes to a dead node twice.
class CircleWithHeirs {
 public:
  // As above. `dead`: the node leads on to its heir, not to its sibling.
  bool Closes(NodePtr at, bool dead) {
    if (!dead) return siblings_.Closes(at);
    siblings_ = Circle();
    return heirs_.Closes(at);
  }

 private:
  Circle siblings_;
  Circle heirs_;
};

inline constexpr char kInCircles[] = "leads in circles";

}  // namespace farside::index::chime
