#include "index/chime/errors.h"

#include <fmt/format.h>

#include "pool/region/layout.h"

namespace farside::index::chime {

Error Damaged(NodePtr at, std::string_view what) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the tree's node at {:#x} of the table's memory node {} {}; run farside fsck",
                           LineBits::Get(at.word()) * pool::kLine, at.node(), what));
}

Error Contended(std::string_view what) {
  return Error(ErrorCode::kContended, fmt::format("{}; retry later", what));
}

Error LockedByMistake() {
  return Error(ErrorCode::kUnavailable,
               "a node of the tree is locked in the name of this client, which does not hold the lock; "
               "reconnect, and if it happens again, run farside fsck");
}

Error LockLost() {
  return Error(ErrorCode::kOutcomeUnknown,
               "the lock was taken from this client, which was taken for dead; reconnect");
}

}  // namespace farside::index::chime
