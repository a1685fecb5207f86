#include "index/kit/growing_root.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace farside::index {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;
using fabric::Unreachable;
using fabric::Write;

namespace {

constexpr uint64_t kWrittenByATrip = 256 * 1024;

// Memory of a table that is not in the catalog yet: it goes back unless it is kept. It is written already, so
// no WRITE of a creation that was destroyed lands in it later.
class Made {
 public:
  explicit Made(pool::PoolClient& pool) : pool_(pool) {}
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() {
    for (const auto& [at, bytes] : all_) pool_.allocator(at.node).FreeUnpublished(at, bytes);
  }
  void Add(FarAddr at, uint64_t bytes) { all_.emplace_back(at, bytes); }
  void Keep() { all_.clear(); }

 private:
  pool::PoolClient& pool_;
  std::vector<std::pair<FarAddr, uint64_t>> all_;
};

Task<Done> WriteFirstSegment(Op& op, FarAddr segment, const NewGrowingTable& table) {
  std::vector<std::byte> lines(std::min(table.line_bytes, kWrittenByATrip));
  for (size_t at = 0; at < lines.size(); at += table.line.size())
    std::memcpy(lines.data() + at, table.line.data(), table.line.size());
  for (uint64_t done = 0; done < table.line_bytes; done += lines.size()) {
    const uint64_t count = std::min<uint64_t>(lines.size(), table.line_bytes - done);
    co_await op.InOrder(Unreachable(Write(segment + done, std::span(lines).first(count))));
  }
  if (table.zero_bytes == 0) co_return Done{};
  const std::vector<std::byte> zeros(table.zero_bytes);
  co_await op.InOrder(Unreachable(Write(segment + table.line_bytes, zeros)));
  co_return Done{};
}

Task<Done> WriteRoot(Op& op, FarAddr at, FarAddr segment, uint64_t bytes) {
  Root root{};
  root.line.state = StateWord::Steady(1);
  root.segments[0] = segment.offset;
  std::vector<std::byte> written(bytes);
  std::memcpy(written.data(), &root, sizeof root);
  co_await op.InOrder(Unreachable(Write(at, written)));
  co_return Done{};
}

}  // namespace

Task<std::vector<FarAddr>> MakeGrowingTable(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes,
                                            NewGrowingTable table) {
  Made made(pool);
  std::vector<FarAddr> roots;
  for (const NodeId node : nodes) {
    pool::Allocator& allocator = pool.allocator(node);
    const FarAddr segment = co_await allocator.Allocate(op, table.segment_bytes());
    co_await WriteFirstSegment(op, segment, table);
    made.Add(segment, table.segment_bytes());
    const FarAddr root = co_await allocator.Allocate(op, table.root_bytes);
    co_await WriteRoot(op, root, segment, table.root_bytes);
    made.Add(root, table.root_bytes);
    roots.push_back(root);
  }
  made.Keep();
  co_return std::move(roots);
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
