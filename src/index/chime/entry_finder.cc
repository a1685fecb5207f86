#include "index/chime/entry_finder.h"

#include "base/bytes.h"
#include "index/chime/mutants.h"
#include "pool/memory/block.h"

namespace farside::index::chime {

void EntryFinder::FindCandidate(size_t from) {
  block_bytes_ = 0;
  index_ = NextCandidate(table_.shape(), target_, hood_, from);
  if (index_ >= end_) return;
  entry_ = hood_.Get(index_);
  if (!table_.shape().inline_keys) {
    block_bytes_ = BlockRef(entry_.value).bytes();
    reads_header_ = block_bytes_ == 0;
    if (reads_header_) block_bytes_ = pool::kLine;
    return;
  }
  StoreU64(inline_value_.data(), entry_.value);
  value_ = AsText(inline_value_);
  found_ = true;
}

fabric::ReadIntoVerb EntryFinder::BlockRead() {
  return fabric::ForBlock(fabric::Read(table_.At(BlockRef(entry_.value)), block_.Resize(block_bytes_)));
}

Status EntryFinder::TakeBlock() {
  if (reads_header_) {
    const Result<uint64_t> size = pool::BlockBytesFromHeader(block_.bytes());
    if (!size.ok()) return size.error();
    reads_header_ = false;
    block_bytes_ = *size;
    return OkStatus();
  }
  const Result<pool::BlockView> view = pool::DecodeBlock(block_.bytes());
  if (!view.ok()) return view.error();
  if (view->key != target_.key.text && !Mutant(kPrefixIsKey)) {
    FindCandidate(index_ + 1);
    return OkStatus();
  }
  block_bytes_ = 0;
  value_ = view->value;
  found_ = true;
  return OkStatus();
}

}  // namespace farside::index::chime
