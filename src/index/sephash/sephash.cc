#include "index/sephash/sephash.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "index/sephash/empty_table.h"
#include "index/sephash/table.h"

namespace farside::index::sephash {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;

uint64_t SephashEngine::empty_bytes() const { return EmptyTable::Bytes(options_.shape); }

Task<std::vector<FarAddr>> SephashEngine::Create(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes) {
  EmptyTable made(options_.shape, pool);
  std::vector<FarAddr> roots;
  for (const NodeId node : nodes) {
    const FarAddr root = co_await made.Make(op, node);
    roots.push_back(root);
  }
  made.Keep();
  co_return std::move(roots);
}

std::unique_ptr<Index> SephashEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, roots);
}

std::string SephashEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  for (const FarAddr& root : roots) {
    if (at.node != root.node || at.offset < root.offset || at.offset >= root.offset + sizeof(Root)) continue;
    const uint64_t inside = at.offset - root.offset;
    if (inside < sizeof(Root::spares)) return fmt::format("root spare {}", inside / sizeof(SpareWord));
    if (inside >= offsetof(Root, parts))
      return fmt::format("root part {}", (inside - offsetof(Root, parts)) / sizeof(uint64_t));
    return "root";
  }
  return "";
}

}  // namespace farside::index::sephash
