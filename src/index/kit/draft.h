// A block on its way into a table: the one of a new value.
#pragma once

#include <cstdint>
#include <string_view>

#include "fabric/op.h"
#include "index/kit/block_buffer.h"
#include "index/kit/unpublished.h"
#include "pool/memory/block.h"

namespace farside::index {

class Draft : public Unpublished {
 public:
  Draft() : Unpublished(pool::BlockUse::kRecords) {}

  // What it will hold; as many bytes as were asked for.
  void Fill(std::string_view key, std::string_view value, uint64_t hash, bool marked = false) {
    pool::EncodeBlock(buffer_.Resize(bytes()), key, value, hash, marked);
  }
  fabric::WriteVerb Write() const {
    return fabric::ForBlock(fabric::Unreachable(fabric::Write(at(), buffer_.bytes())));
  }

 private:
  BlockBuffer buffer_;
};

}  // namespace farside::index
