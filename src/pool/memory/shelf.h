// Shelf: the chunks of one size class that a client owns, sorted by how full they are.
//
// Blocks come from the fullest chunk that has one, so that the emptier ones have a chance to become empty and
// be released (the idea of Hoard's superblock bins, Berger et al., ASPLOS 2000).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "pool/memory/chunk.h"

namespace farside::pool {

class Shelf {
 public:
  void Add(Chunk& chunk);
  void Remove(Chunk& chunk);

  // A chunk with a free block: the fullest, roughly. Null if there is none.
  Chunk* Fullest() const;
  // Takes a block of a chunk that has one.
  uint32_t Take(Chunk& chunk) {
    const uint32_t block = chunk.free.TakeLowest();
    Sort(chunk);
    return block;
  }
  // False if the block was free already.
  bool Put(Chunk& chunk, uint32_t block) {
    if (!chunk.free.Insert(block)) return false;
    if (chunk.IsEmpty()) chunk.evacuating = false;
    Sort(chunk);
    return true;
  }
  // From now on it hands out nothing, until it is empty or the mark is taken off.
  void SetEvacuating(Chunk& chunk, bool evacuating) {
    chunk.evacuating = evacuating;
    Sort(chunk);
  }
  // Takes this one, which must be free.
  void Withdraw(Chunk& chunk, uint32_t block) {
    chunk.free.Erase(block);
    Sort(chunk);
  }

  std::span<Chunk* const> chunks() const { return chunks_; }
  // A chunk without a single block handed out; null if there is none. `next` leads to the others.
  Chunk* FirstEmpty() const { return bins_[kEmpty]; }
  // True if some chunk that is not empty has a free block.
  bool HasPartlyFree() const;

 private:
  static constexpr uint32_t kEmpty = 4;  // bins 0 to 3 are quarters
  static constexpr uint32_t kFull = 5;   // or being evacuated; not kept in a list
  static constexpr uint32_t kBins = 5;

  static uint32_t BinOf(const Chunk& chunk);
  void Sort(Chunk& chunk) {
    const uint32_t bin = BinOf(chunk);
    if (bin != chunk.bin) Move(chunk, bin);
  }
  void Move(Chunk& chunk, uint32_t bin);
  void Unlink(Chunk& chunk);
  void Link(Chunk& chunk, uint32_t bin);

  std::array<Chunk*, kBins> bins_{};
  std::vector<Chunk*> chunks_;
};

}  // namespace farside::pool
