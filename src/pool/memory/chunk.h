// What a client knows of a chunk that it owns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pool/memory/carving.h"

namespace farside::pool {

// A set of the blocks of a chunk. The lowest one is found in a step or two.
class BlockSet {
 public:
  BlockSet() = default;  // of no blocks at all
  explicit BlockSet(uint32_t blocks);

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool Contains(uint32_t block) const { return (words_[block / 64] >> (block % 64) & 1) != 0; }

  // True if it changed anything.
  bool Insert(uint32_t block);
  bool Erase(uint32_t block);
  void InsertAll();
  // The set must not be empty.
  uint32_t TakeLowest();

  // Bit b of word w is block 64 * w + b.
  std::span<const uint64_t> words() const { return words_; }

 private:
  std::vector<uint64_t> words_;
  std::vector<uint64_t> used_;  // bit w of it: words_[w] is not zero
  uint32_t blocks_ = 0;
  uint32_t size_ = 0;
  uint32_t lowest_ = 0;  // no word of used_ before this one has a bit
};

struct Chunk {
  Chunk(uint32_t chunk_index, BlockKind chunk_kind, uint32_t number_of_blocks)
      : index(chunk_index), kind(chunk_kind), blocks(number_of_blocks), free(number_of_blocks) {}

  bool IsEmpty() const { return free.size() == blocks; }

  const uint32_t index;
  const BlockKind kind;
  const uint32_t blocks;

  BlockSet free;            // the others are handed out, or given back and not harvested yet
  BlockSet suspects;        // during a sweep: handed out when it began, and not known to be in use
  bool swept = false;       // `suspects` counts
  bool evacuating = false;  // hands out nothing until it is empty (evac/2)
  bool harvesting = false;  // by some coroutine: not to be released, nor to be harvested by another

  // ---- for the shelf
  Chunk* next = nullptr;
  Chunk* previous = nullptr;
  uint32_t bin = 0;
  uint32_t position = 0;
};

}  // namespace farside::pool
