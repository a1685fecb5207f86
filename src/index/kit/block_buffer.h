// Blocks that are read: a key and its value (pool/memory/block.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "pool/region/layout.h"

namespace farside::index {

// Room for a block; on the heap only if it is large.
class BlockBuffer {
 public:
  std::span<std::byte> Resize(uint64_t bytes) {
    if (bytes > small_.size()) {
      large_.resize(bytes);
      return bytes_ = std::span(large_);
    }
    return bytes_ = std::span(small_).first(bytes);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::array<std::byte, 4 * pool::kLine> small_;
  std::vector<std::byte> large_;
  std::span<std::byte> bytes_;
};

// READs a block of so many bytes. 0: the block is too large for its size to stand beside its address, and a
// further trip reads its header first.
Task<Done> ReadBlock(fabric::Op& op, fabric::FarAddr at, uint64_t bytes, BlockBuffer& buffer);

}  // namespace farside::index
