#include "pool/durability.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.h"

namespace farside::pool {
namespace {

// Flushes of one Call are bounded, so that the node's processor is soon there for others.
constexpr uint64_t kMostBytes = uint64_t{1} << 20;

Error Refuse(std::string_view why) {
  return Error(ErrorCode::kInvalidArgument, fmt::format("kMakeDurable: {}", why));
}

// The request is a list of ranges: offset and size, 8 bytes each.
Result<std::string> Handle(fabric::NodeMemory& memory, fabric::ClientId /*caller*/,
                           std::string_view request) {
  if (request.size() % sizeof(ByteRange) != 0) return Refuse("the request is not a list of ranges");
  std::vector<ByteRange> ranges(request.size() / sizeof(ByteRange));
  if (!ranges.empty()) std::memcpy(ranges.data(), request.data(), request.size());
  uint64_t bytes = 0;
  for (const ByteRange& range : ranges) {
    if (range.offset > memory.bytes() || range.size > memory.bytes() - range.offset)
      return Refuse("a range leaves the region");
    if (range.size > kMostBytes || (bytes += range.size) > kMostBytes)
      return Refuse("too many bytes at once");
  }
  for (const ByteRange& range : ranges) memory.Flush(range.offset, range.size);
  memory.Drain();
  return std::string();
}

fabric::CallVerb RequestFor(fabric::NodeId node, std::span<const ByteRange> ranges) {
  return fabric::ForMaintenance(fabric::CallVerb(node, kMakeDurable, AsText(std::as_bytes(ranges))));
}

}  // namespace

void ServeDurability(fabric::CallTable& calls) { calls.Set(kMakeDurable, Handle); }

Task<Done> MakeDurable(fabric::Op& op, fabric::NodeId node, std::vector<ByteRange> ranges) {
  std::vector<ByteRange> next;  // those of the next Call
  uint64_t bytes = 0;
  for (ByteRange& range : ranges) {
    while (range.size > 0) {
      const uint64_t some = std::min(range.size, kMostBytes - bytes);
      next.push_back({range.offset, some});
      range = {range.offset + some, range.size - some};
      bytes += some;
      if (bytes < kMostBytes) continue;
      co_await op.InOrder(RequestFor(node, next));
      next.clear();
      bytes = 0;
    }
  }
  if (!next.empty()) co_await op.InOrder(RequestFor(node, next));
  co_return Done{};
}

}  // namespace farside::pool
