#include "index/continuity/errors.h"

#include <fmt/format.h>

namespace farside::index::continuity {
namespace {

Error Damaged(std::string_view what, fabric::FarAddr at) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the {} of a continuity table at {:#x} of node {} is damaged; run farside fsck",
                           what, at.offset, fabric::Index(at.node)));
}

}  // namespace

Error DamagedRoot(fabric::FarAddr root) { return Damaged("root", root); }
Error DamagedPair(fabric::FarAddr pair) { return Damaged("pair", pair); }

Error Contended() {
  return Error(ErrorCode::kContended, "the processor of the node keeps changing these slots; try again");
}

Error Grows() {
  return Error(ErrorCode::kContended,
               "another operation of this client is making the table larger; try again");
}

Error Outgrown() {
  return Error(ErrorCode::kContended, "the table grew again and again meanwhile; try again");
}

}  // namespace farside::index::continuity
