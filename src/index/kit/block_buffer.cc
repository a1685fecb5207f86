#include "index/kit/block_buffer.h"

#include "farside/result.h"
#include "pool/memory/block.h"

namespace farside::index {

using fabric::ForBlock;
using fabric::Read;

Task<Done> ReadBlock(fabric::Op& op, fabric::FarAddr at, uint64_t bytes, BlockBuffer& buffer) {
  if (bytes == 0) {
    co_await op.InOrder(ForBlock(Read(at, buffer.Resize(pool::kLine))));
    const Result<uint64_t> size = pool::BlockBytesFromHeader(buffer.bytes());
    if (!size.ok()) co_return size.error();
    bytes = *size;
  }
  co_await op.InOrder(ForBlock(Read(at, buffer.Resize(bytes))));
  co_return Done{};
}

}  // namespace farside::index
