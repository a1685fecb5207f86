#include "index/kit/growing_root.h"

#include <fmt/format.h>

#include <cstddef>
#include <vector>


namespace farside::index {

using fabric::FarAddr;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;
using fabric::WriteObject;

Task<FarAddr> MakeGrowingRoot(Op& op, pool::Allocator& allocator, FarAddr segment, uint64_t bytes) {
  const FarAddr at = co_await allocator.Allocate(op, bytes);
  Root root{};
  root.line.state = StateWord::Steady(1);
  root.segments[0] = segment.offset;
  const std::vector<std::byte> behind(bytes - sizeof(Root));
  co_await op.InOrder(Unreachable(WriteObject(at, root)), Unreachable(Write(at + sizeof(Root), behind)));
  co_return at;
}

std::string DescribeGrowingRoot(FarAddr at, std::span<const FarAddr> roots) {
  for (const FarAddr& root : roots) {
    if (at.node != root.node || at.offset < root.offset || at.offset >= root.offset + sizeof(Root)) continue;
    const uint64_t inside = at.offset - root.offset;
    if (inside == 0) return "root state";
    if (inside == kRecordsOffset) return "root records";
    if (inside >= kDirectoryOffset) return fmt::format("root segment {}", (inside - kDirectoryOffset) / 8);
    return "root";
  }
  return "";
}

}  // namespace farside::index
