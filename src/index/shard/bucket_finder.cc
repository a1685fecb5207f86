#include "index/shard/bucket_finder.h"

#include "index/shard/mutants.h"

namespace farside::index::shard {

bool IsOf(const pool::BlockView& block, std::string_view key) {
  return block.key == key || Mutant(kTagIsKey);
}

Status BucketFinder::TakeBlock() {
  if (reads_header_) {
    const Result<uint64_t> size = pool::BlockBytesFromHeader(buffer_.bytes());
    if (!size.ok()) return size.error();
    reads_header_ = false;
    block_bytes_ = *size;
    return OkStatus();
  }
  block_bytes_ = 0;
  const Result<pool::BlockView> block = pool::DecodeBlock(buffer_.bytes());
  if (!block.ok()) return block.error();
  if (IsOf(*block, at_.key)) {
    value_ = block->value;
    found_ = true;
  } else {
    TakeCandidate();
  }
  return OkStatus();
}

}  // namespace farside::index::shard
