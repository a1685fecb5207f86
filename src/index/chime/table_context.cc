#include "index/chime/table_context.h"

#include <array>
#include <utility>

#include "farside/result.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

using fabric::FarAddr;
using fabric::ForBlock;
using fabric::NodeId;
using fabric::Op;
using fabric::Read;

namespace {

pool::NodeList NodesOf(const std::vector<FarAddr>& roots) {
  std::vector<NodeId> nodes;
  for (const FarAddr& root : roots) nodes.push_back(root.node);
  return pool::NodeList(std::move(nodes));
}

}  // namespace

TableContext::TableContext(const Options& table_options, pool::PoolClient& pool_client,
                           const std::vector<FarAddr>& roots)
    : options(table_options), pool(pool_client), root_block(roots.front()), nodes(NodesOf(roots)) {}

Task<Done> TableContext::ReadBlock(Op& op, BlockRef block, BlockBuffer& buffer) const {
  return index::ReadBlock(op, At(block), block.bytes(), buffer);
}

Task<uint64_t> TableContext::SizeOf(Op& op, BlockRef block) const {
  if (block.bytes() != 0) co_return block.bytes();
  std::array<std::byte, pool::kLine> line;
  co_await op.InOrder(ForBlock(Read(At(block), line)));
  const Result<uint64_t> size = pool::BlockBytesFromHeader(line);
  if (!size.ok()) co_return size.error();
  co_return *size;
}

}  // namespace farside::index::chime
