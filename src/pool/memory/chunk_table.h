// Finding chunks in the chunk table of a node.
//
// What is found is what a READ has shown a while ago; only a CAS makes it so. Chunks for blocks are looked
// for from the low end, extents from the high end, so that the former do not cut up the room of the latter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "pool/memory/carving.h"
#include "pool/region/layout.h"

namespace farside::pool {

class ChunkTable {
 public:
  struct Found {
    uint32_t chunk = 0;
    ChunkWord word;
  };

  ChunkTable(const Carving& carving, uint64_t seed)
      : carving_(carving), random_(seed), run_end_(carving.chunks()) {}

  // A chunk to take blocks of a kind from: free, or one of the kind without an owner and with a good part
  // of its blocks given back. Nothing if the whole table has none.
  Task<std::optional<Found>> FindForBlocks(fabric::Op& op, BlockKind kind);
  // The first of `count` free chunks in a row.
  Task<std::optional<uint32_t>> FindRun(fabric::Op& op, uint32_t count);
  // After FindRun has found one: whether what is reserved stays free if that run is taken. No trip, if there
  // is enough in what was READ for the run.
  Task<bool> LeavesReserve(fabric::Op& op, BlockUse use, uint32_t count);

  // Reads the words from `first` on. A word that is not sound reads as kUnsound.
  Task<Done> ReadWords(fabric::Op& op, uint64_t first, std::span<ChunkWord> into);
  // Not a word of any chunk, and never equal to one.
  static constexpr ChunkWord kUnsound{~uint64_t{0}};
  // How many words are read at once when all are wanted.
  static constexpr uint64_t kManyWords = 8192;

  // Says what a word is now, as far as this client knows.
  void Note(uint64_t chunk, ChunkWord word);

  // Of the last search: all of the node, if it found nothing.
  uint64_t free_seen() const { return free_seen_; }
  uint64_t unsound_seen() const { return unsound_seen_; }
  uint64_t trips() const { return trips_; }

 private:
  static constexpr uint64_t kMostReserved = 4;
  static constexpr uint64_t kChunksPerReserved = 128;

  Task<Done> ReadWindow(fabric::Op& op, uint64_t first, uint64_t count);
  Task<std::optional<Found>> PickForBlocks(fabric::Op& op, BlockKind kind);
  // The one with most blocks given back, if they are enough to be worth taking it over.
  Task<std::optional<Found>> PickOwnerless(fabric::Op& op, BlockKind kind);
  // How many free chunks are left to structure: tables need some of it also to give memory back, when they
  // merge, split, or shorten what they have.
  uint64_t ReservedFrom(BlockUse use) const {
    if (use == BlockUse::kStructure) return 0;
    return std::min(kMostReserved, carving_.chunks() / kChunksPerReserved);
  }
  Task<std::optional<uint32_t>> FindRunBelow(fabric::Op& op, uint32_t count, uint64_t end);

  const Carving& carving_;
  Random random_;
  std::vector<ChunkWord> window_;  // the part of the table that was read last
  uint64_t window_first_ = 0;
  uint64_t run_end_;  // extents are looked for below this chunk first
  uint32_t searches_ = 0;
  uint64_t free_seen_ = 0;
  uint64_t unsound_seen_ = 0;
  uint64_t trips_ = 0;
};

}  // namespace farside::pool
