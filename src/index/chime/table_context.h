// What every part of an open chime table knows: the options, the pool's client, where the table stands. It
// does not change while the table is open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "index/chime/layout.h"
#include "index/chime/options.h"
#include "index/kit/block_buffer.h"
#include "pool/client.h"

namespace farside::index::chime {

struct TableContext {
  TableContext(const Options& table_options, pool::PoolClient& pool_client,
               const std::vector<fabric::FarAddr>& roots);

  const Shape& shape() const { return options.shape; }
  fabric::FarAddr At(NodePtr node) const { return node.at(nodes); }
  fabric::FarAddr At(BlockRef block) const { return AddressOf(block.word(), nodes); }
  bool Has(NodePtr node) const { return IsOnNodes(node.word(), nodes); }
  // By the position of the memory node in `nodes`.
  pool::Allocator& AllocatorOf(size_t node) const { return pool.allocator(nodes.At(node)); }
  pool::Membership& MemberOf(NodePtr node) const { return pool.member(nodes.At(node.node())); }

  Task<Done> ReadBlock(fabric::Op& op, BlockRef block, BlockBuffer& buffer) const;
  // The size of a block. If the reference does not have it, a READ of the block's header tells.
  Task<uint64_t> SizeOf(fabric::Op& op, BlockRef block) const;

  const Options options;
  pool::PoolClient& pool;
  const fabric::FarAddr root_block;
  const pool::NodeList nodes;  // of the table, in the order in which NodePtr counts them
};

}  // namespace farside::index::chime
