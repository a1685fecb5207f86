#include "index/nessie/nessie.h"

#include <array>
#include <bit>
#include <utility>

#include "index/kit/growing_root.h"
#include "index/nessie/table.h"

namespace farside::index::nessie {

using fabric::FarAddr;
using fabric::NodeId;
using fabric::Op;

uint64_t NessieEngine::empty_bytes() const { return sizeof(TableRoot) + options_.shape.SegmentBytes(0); }

// Empty slots.
Task<std::vector<FarAddr>> NessieEngine::Create(Op& op, pool::PoolClient& pool, std::vector<NodeId> nodes) {
  std::array<Word, pool::kLine / sizeof(Word)> line;
  line.fill(Word::FirstEmpty());
  const NewGrowingTable table{.line = std::bit_cast<std::array<std::byte, pool::kLine>>(line),
                              .line_bytes = options_.shape.SegmentBytes(0),
                              .root_bytes = sizeof(TableRoot)};
  return MakeGrowingTable(op, pool, std::move(nodes), table);
}

std::unique_ptr<Index> NessieEngine::Open(pool::PoolClient& pool, std::vector<FarAddr> roots) {
  return std::make_unique<Table>(options_, pool, roots);
}

std::string NessieEngine::Describe(FarAddr at, std::span<const FarAddr> roots) const {
  return DescribeGrowingRoot(at, roots);
}

}  // namespace farside::index::nessie
