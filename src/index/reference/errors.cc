#include "index/reference/errors.h"

#include <fmt/format.h>

namespace farside::index::reference {

Error Damaged(fabric::FarAddr bucket) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the bucket at {:#x} of node {} names an image that is not complete; run "
                           "farside fsck",
                           bucket.offset, fabric::Index(bucket.node)));
}

Error Contended() {
  return Error(ErrorCode::kContended, fmt::format("gave up after {} attempts; retry later", kMostAttempts));
}

Error Locked() {
  return Error(ErrorCode::kContended, "another client holds the lock of the key's bucket; retry later");
}

}  // namespace farside::index::reference
