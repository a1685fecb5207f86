// Size classes: which sizes blocks come in, and how a chunk of each is cut.
//
//   | bitmap, one bit per block, whole words | padding | block 0 | block 1 | ... | rest |
//
// Sizes are whole lines. Those up to 1 KiB grow by a line, larger ones in four steps per doubling (so at most
// a fifth of a block is unused), and those of which fewer than 16 fit into a chunk are as large as they can
// be for their number. The classes follow from the size of a chunk alone, so every client has the same.
//
//   chunk of 1 MiB: 64 128 192 ... 1024, 1280 ... 65536, 74880 (14 blocks) ... 524224 (2)
//
// A chunk word names a class by its number: a change of this list is a change of the layout.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdint>

#include "pool/region/layout.h"

namespace farside::pool {

class SizeClasses {
 public:
  static constexpr uint32_t kMost = 96;  // classes; more than the largest chunk has

  // How a chunk of one class is cut.
  struct Shape {
    uint64_t block_bytes = 0;
    uint64_t first_block = 0;  // offset in the chunk; the bitmap stands before it
    uint32_t blocks = 0;

    constexpr uint32_t bitmap_words() const { return (blocks + 63) / 64; }
    constexpr uint64_t bitmap_bytes() const { return uint64_t{bitmap_words()} * 8; }
    // The bits of a word of the bitmap that stand for blocks.
    constexpr uint64_t word_mask(uint32_t word) const {
      const uint32_t bits = std::min(blocks - word * 64, 64u);
      return ~uint64_t{0} >> (64 - bits);
    }
  };

  explicit constexpr SizeClasses(uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {
    for (uint64_t bytes = kLine; bytes <= chunk_bytes_ / 2; bytes = NextSize(bytes)) Add(bytes);
    FillLookup();
  }

  constexpr uint32_t count() const { return count_; }
  // The largest block; what is larger is an extent. 0 if the chunks are too small for blocks.
  constexpr uint64_t largest() const { return count_ == 0 ? 0 : shapes_[count_ - 1].block_bytes; }
  constexpr const Shape& shape(uint32_t size_class) const { return shapes_[size_class]; }
  constexpr uint64_t chunk_bytes() const { return chunk_bytes_; }

  // The smallest class whose blocks have at least `bytes`, which is at most largest().
  constexpr uint32_t ClassOf(uint64_t bytes) const {
    assert(bytes <= largest());
    const uint64_t lines = (bytes + kLine - 1) / kLine;
    if (lines < by_lines_.size()) return by_lines_[lines];
    uint32_t low = by_lines_.back();
    uint32_t high = count_ - 1;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (shapes_[middle].block_bytes < bytes) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // How many chunks an extent of `bytes` takes.
  constexpr uint64_t ChunksOf(uint64_t bytes) const {
    return bytes / chunk_bytes_ + (bytes % chunk_bytes_ != 0);
  }

 private:
  // A block that is a power of two, up to a page, is aligned to its size: it never straddles a page.
  static constexpr bool IsAligned(uint64_t bytes) { return std::has_single_bit(bytes) && bytes <= kPage; }

  constexpr Shape ShapeOf(uint64_t block_bytes) const {
    Shape shape{.block_bytes = block_bytes};
    const uint64_t alignment = IsAligned(block_bytes) ? block_bytes : kLine;
    uint64_t blocks = chunk_bytes_ / block_bytes;
    while (true) {
      shape.blocks = static_cast<uint32_t>(blocks);
      shape.first_block = RoundUp(shape.bitmap_bytes(), alignment);
      if (blocks == 0 || shape.first_block + blocks * block_bytes <= chunk_bytes_) return shape;
      --blocks;
    }
  }

  // The next candidate after `bytes`.
  constexpr uint64_t NextSize(uint64_t bytes) const {
    if (bytes < kByLines) return bytes + kLine;
    const uint64_t step = std::bit_floor(bytes) / 4;
    if (bytes + step <= chunk_bytes_ / kFewBlocks) return bytes + step;
    // The largest size of which one block fewer fits, or the next power of two if that comes first.
    const uint32_t blocks = ShapeOf(bytes).blocks;
    uint64_t largest = chunk_bytes_;  // ends the loop
    for (uint32_t fewer = std::min(blocks - 1, kFewBlocks); fewer >= 2 && largest == chunk_bytes_; --fewer) {
      if (fewer > 8 && fewer % 2 == 1) continue;  // small steps are not worth a class
      const uint64_t fit = (chunk_bytes_ - kLine) / fewer / kLine * kLine;
      if (fit > bytes) largest = fit;
    }
    const uint64_t aligned = std::bit_floor(bytes) * 2;
    return IsAligned(aligned) ? std::min(largest, aligned) : largest;
  }

  constexpr void Add(uint64_t bytes) {
    const Shape shape = ShapeOf(bytes);
    if (shape.blocks < 2 || count_ == kMost) return;
    // A smaller size of which no more fit is of no use, unless it is wanted for its alignment.
    if (count_ > 0 && shapes_[count_ - 1].blocks <= shape.blocks &&
        !IsAligned(shapes_[count_ - 1].block_bytes))
      --count_;
    shapes_[count_++] = shape;
  }

  constexpr void FillLookup() {
    uint32_t size_class = 0;
    for (uint64_t lines = 0; lines < by_lines_.size(); ++lines) {
      while (size_class + 1 < count_ && shapes_[size_class].block_bytes < lines * kLine) ++size_class;
      by_lines_[lines] = static_cast<uint8_t>(size_class);
    }
  }

  static constexpr uint32_t kFewBlocks = 16;
  static constexpr uint64_t kByLines = 16 * kLine;  // up to here, every number of lines has a class

  uint64_t chunk_bytes_;
  uint32_t count_ = 0;
  std::array<Shape, kMost> shapes_{};
  std::array<uint8_t, 65> by_lines_{};  // up to a page
};

}  // namespace farside::pool
