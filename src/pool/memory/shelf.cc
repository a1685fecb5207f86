#include "pool/memory/shelf.h"

namespace farside::pool {

uint32_t Shelf::BinOf(const Chunk& chunk) {
  const uint32_t free = chunk.free.size();
  if (free == chunk.blocks) return kEmpty;
  if (free == 0 || chunk.evacuating) return kFull;
  const uint32_t quarter = chunk.blocks / 4;
  return (free > quarter ? 1u : 0u) + (free > 2 * quarter ? 1u : 0u) + (free > 3 * quarter ? 1u : 0u);
}

void Shelf::Link(Chunk& chunk, uint32_t bin) {
  chunk.bin = bin;
  if (bin == kFull) return;
  chunk.previous = nullptr;
  chunk.next = bins_[bin];
  if (chunk.next != nullptr) chunk.next->previous = &chunk;
  bins_[bin] = &chunk;
}

void Shelf::Unlink(Chunk& chunk) {
  if (chunk.bin == kFull) return;
  if (chunk.next != nullptr) chunk.next->previous = chunk.previous;
  if (chunk.previous != nullptr) {
    chunk.previous->next = chunk.next;
  } else {
    bins_[chunk.bin] = chunk.next;
  }
}

void Shelf::Move(Chunk& chunk, uint32_t bin) {
  Unlink(chunk);
  Link(chunk, bin);
}

void Shelf::Add(Chunk& chunk) {
  chunk.position = static_cast<uint32_t>(chunks_.size());
  chunks_.push_back(&chunk);
  Link(chunk, BinOf(chunk));
}

void Shelf::Remove(Chunk& chunk) {
  Unlink(chunk);
  chunks_.back()->position = chunk.position;
  chunks_[chunk.position] = chunks_.back();
  chunks_.pop_back();
}

Chunk* Shelf::Fullest() const {
  for (Chunk* chunk : bins_) {
    if (chunk != nullptr) return chunk;
  }
  return nullptr;
}

bool Shelf::HasPartlyFree() const {
  return bins_[0] != nullptr || bins_[1] != nullptr || bins_[2] != nullptr || bins_[3] != nullptr;
}

}  // namespace farside::pool
