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

Error LockLost() {
  return Error(ErrorCode::kOutcomeUnknown,
               "the lock was taken from this client, which was taken for dead; reconnect");
}

}  // namespace farside::index::chime
