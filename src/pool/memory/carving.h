// How a region is carved into chunks and these into blocks: from addresses to places and back. Numbers only;
// nothing here reads memory.
#pragma once

#include <cstdint>
#include <optional>

#include "fabric/address.h"
#include "pool/memory/size_class.h"
#include "pool/region/layout.h"

namespace farside::pool {

// Where a block lies.
struct BlockPosition {
  static constexpr uint32_t kExtentClass = ~uint32_t{0};

  uint32_t chunk = 0;       // the first one of an extent
  uint32_t size_class = 0;  // or kExtentClass
  uint32_t block = 0;       // its number in the chunk; of an extent, the number of chunks

  bool is_extent() const { return size_class == kExtentClass; }
};

// Blocks that are kept on one shelf: of one size, and for one use.
struct BlockKind {
  uint32_t size_class = 0;
  BlockUse use = BlockUse::kStructure;

  friend constexpr bool operator==(BlockKind, BlockKind) = default;
};

class Carving {
 public:
  Carving(fabric::NodeId node, const Geometry& geometry)
      : classes_(geometry.chunk_bytes),
        node_(node),
        client_slots_(geometry.client_slots),
        chunks_(geometry.chunks()),
        chunk_table_(geometry.chunk_table()),
        first_chunk_(geometry.first_chunk()) {}

  const SizeClasses& classes() const { return classes_; }
  uint64_t chunks() const { return chunks_; }

  fabric::FarAddr WordAt(uint64_t chunk) const { return fabric::FarAddr(node_, chunk_table_ + chunk * 8); }
  fabric::FarAddr ChunkAt(uint64_t chunk) const {
    return fabric::FarAddr(node_, first_chunk_ + chunk * classes_.chunk_bytes());
  }
  fabric::FarAddr BitmapWordAt(uint64_t chunk, uint32_t word) const {
    return ChunkAt(chunk) + uint64_t{word} * 8;
  }
  fabric::FarAddr BlockAt(uint64_t chunk, uint32_t size_class, uint32_t block) const {
    const SizeClasses::Shape& shape = classes_.shape(size_class);
    return ChunkAt(chunk) + shape.first_block + block * shape.block_bytes;
  }

  // The chunk that an address lies in, if any. Of a node that was never reached, there is none, of whatever
  // size.
  std::optional<uint32_t> ChunkOf(fabric::FarAddr at) const {
    if (chunks_ == 0 || at.node != node_ || at.offset < first_chunk_) return std::nullopt;
    const uint64_t chunk = (at.offset - first_chunk_) / classes_.chunk_bytes();
    if (chunk >= chunks_) return std::nullopt;
    return static_cast<uint32_t>(chunk);
  }

  // The place of a block of `bytes`, or nothing if no block of that size can have this address.
  std::optional<BlockPosition> Locate(fabric::FarAddr block, uint64_t bytes) const {
    const std::optional<uint32_t> chunk = ChunkOf(block);
    if (!chunk.has_value()) return std::nullopt;
    const uint64_t inside = block.offset - ChunkAt(*chunk).offset;
    BlockPosition position;
    position.chunk = *chunk;
    if (bytes > classes_.largest()) {
      const uint64_t count = classes_.ChunksOf(bytes);
      if (inside != 0 || count > chunks_ - *chunk) return std::nullopt;
      position.size_class = BlockPosition::kExtentClass;
      position.block = static_cast<uint32_t>(count);
      return position;
    }
    position.size_class = classes_.ClassOf(bytes);
    const SizeClasses::Shape& shape = classes_.shape(position.size_class);
    if (inside < shape.first_block || (inside - shape.first_block) % shape.block_bytes != 0)
      return std::nullopt;
    const uint64_t number = (inside - shape.first_block) / shape.block_bytes;
    if (number >= shape.blocks) return std::nullopt;
    position.block = static_cast<uint32_t>(number);
    return position;
  }

  // Whether a correct client can have written this word for this chunk.
  bool IsSound(uint64_t chunk, ChunkWord word) const {
    if (ChunkWord::Unused::Get(word.word()) != 0 || word.owner().slot() >= client_slots_) return false;
    if (word.state() != ChunkState::kBlocks && word.use() != BlockUse::kStructure) return false;
    switch (word.state()) {
      case ChunkState::kFree: return word == ChunkWord();
      case ChunkState::kBlocks: return word.argument() < classes_.count();
      case ChunkState::kExtent: return word.argument() >= 1 && word.argument() <= chunks_ - chunk;
      case ChunkState::kExtentRest:
        return word.argument() >= 1 && word.argument() <= chunk && word.owner().is_none();
    }
    return false;
  }

 private:
  SizeClasses classes_;
  fabric::NodeId node_;
  uint32_t client_slots_;
  uint64_t chunks_;
  uint64_t chunk_table_;
  uint64_t first_chunk_;
};

}  // namespace farside::pool
