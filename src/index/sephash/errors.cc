#include "index/sephash/errors.h"

#include <fmt/format.h>

namespace farside::index::sephash {
namespace {

Error Damaged(std::string_view part, fabric::FarAddr at, std::string_view what) {
  return Error(ErrorCode::kCorrupt, fmt::format("the {} of a sephash table at {:#x} of node {} {}; run "
                                                "farside fsck",
                                                part, at.offset, fabric::Index(at.node), what));
}

}  // namespace

Error DamagedSegment(fabric::FarAddr at, std::string_view what) { return Damaged("CurSegment", at, what); }
Error DamagedMain(fabric::FarAddr at, std::string_view what) { return Damaged("MainSegment", at, what); }
Error DamagedRoot(fabric::FarAddr at, std::string_view what) { return Damaged("root", at, what); }
Error Outrun() {
  return Error(ErrorCode::kContended, "other clients kept changing the key's segment; retry later");
}

}  // namespace farside::index::sephash
