#include "index/kit/growing_root.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <vector>


namespace farside::index {

using fabric::FarAddr;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;

Task<FarAddr> MakeGrowingRoot(Op& op, pool::Allocator& allocator, FarAddr segment, uint64_t bytes) {
  const FarAddr at = co_await allocator.Allocate(op, bytes);
  Root root{};
  root.line.state = StateWord::Steady(1);
  root.segments[0] = segment.offset;
  std::vector<std::byte> written(bytes);
  std::memcpy(written.data(), &root, sizeof root);
  co_await op.InOrder(Unreachable(Write(at, written)));
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
