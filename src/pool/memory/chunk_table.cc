#include "pool/memory/chunk_table.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace farside::pool {

using fabric::ForMaintenance;
using fabric::Op;
using fabric::Order;
using fabric::Read;

namespace {

constexpr uint64_t kFewWords = 512;
// A claim picks one of this many at random, so that clients that start together do not meet at each.
constexpr size_t kSpread = 16;
constexpr size_t kProbedAtOnce = 8;
// Of the blocks of a chunk without owner, this part must be free for it to be preferred to a free chunk.
constexpr uint32_t kWorthTakingOver = 8;
// Every so many searches start at the low end again, where others may have released chunks meanwhile.
constexpr uint32_t kSearchesFromTheStart = 16;

}  // namespace

Task<Done> ChunkTable::ReadWords(Op& op, uint64_t first, std::span<ChunkWord> into) {
  ++trips_;
  co_await op.InOrder(ForMaintenance(Read(carving_.WordAt(first), std::as_writable_bytes(into))));
  for (size_t i = 0; i < into.size(); ++i) {
    if (carving_.IsSound(first + i, into[i])) continue;
    into[i] = kUnsound;
    ++unsound_seen_;
  }
  co_return Done{};
}

Task<Done> ChunkTable::ReadWindow(Op& op, uint64_t first, uint64_t count) {
  std::vector<ChunkWord> words(count);  // not the window itself, which other searches look at meanwhile
  co_await ReadWords(op, first, words);
  window_.swap(words);
  window_first_ = first;
  co_return Done{};
}

void ChunkTable::Note(uint64_t chunk, ChunkWord word) {
  if (chunk >= window_first_ && chunk - window_first_ < window_.size()) window_[chunk - window_first_] = word;
  if (word == ChunkWord()) run_end_ = carving_.chunks();
}

// ---- chunks for blocks -------------------------------------------------------------------------------

Task<std::optional<ChunkTable::Found>> ChunkTable::FindForBlocks(Op& op, BlockKind kind) {
  uint64_t first = window_first_;
  if (++searches_ % kSearchesFromTheStart != 0) {
    const std::optional<Found> known = co_await PickForBlocks(op, kind);
    if (known.has_value()) co_return known;
  } else {
    first = 0;
  }
  uint64_t free = 0;
  uint64_t count = kFewWords;
  for (uint64_t seen = 0; seen < carving_.chunks(); seen += count, count = kManyWords) {
    count = std::min(count, carving_.chunks() - first);
    co_await ReadWindow(op, first, count);
    free += static_cast<uint64_t>(std::count(window_.begin(), window_.end(), ChunkWord()));
    const std::optional<Found> found = co_await PickForBlocks(op, kind);
    if (found.has_value()) co_return found;
    first = first + count == carving_.chunks() ? 0 : first + count;
  }
  free_seen_ = free;
  co_return std::nullopt;
}

Task<std::optional<ChunkTable::Found>> ChunkTable::PickForBlocks(Op& op, BlockKind kind) {
  const ChunkWord ownerless(ChunkState::kBlocks, kind.size_class, Owner(), kind.use);
  if (std::find(window_.begin(), window_.end(), ownerless) != window_.end()) {
    const std::optional<Found> rich = co_await PickOwnerless(op, kind);
    if (rich.has_value()) co_return rich;
  }
  size_t free = 0;
  Found found;
  const uint64_t reserved = ReservedFrom(kind.use);
  for (size_t i = 0; i < window_.size() && free < kSpread; ++i) {
    if (window_[i] != ChunkWord()) continue;
    ++free;
    if (random_.Below(free) == 0) found.chunk = static_cast<uint32_t>(window_first_ + i);
  }
  if (free <= reserved) co_return std::nullopt;
  co_return found;
}

Task<std::optional<ChunkTable::Found>> ChunkTable::PickOwnerless(Op& op, BlockKind kind) {
  const SizeClasses::Shape& shape = carving_.classes().shape(kind.size_class);
  const ChunkWord ownerless(ChunkState::kBlocks, kind.size_class, Owner(), kind.use);
  std::vector<uint32_t> chunks;
  for (size_t i = 0; i < window_.size() && chunks.size() < kProbedAtOnce; ++i) {
    if (window_[i] != ownerless) continue;
    chunks.push_back(static_cast<uint32_t>(window_first_ + i));
    window_[i] = kUnsound;  // looked at; not again before the window is read again
  }
  std::vector<uint64_t> bitmaps(chunks.size() * shape.bitmap_words());
  fabric::Batch batch(op, Order::kTogether);
  for (size_t i = 0; i < chunks.size(); ++i) {
    const auto bitmap = std::span(bitmaps).subspan(i * shape.bitmap_words(), shape.bitmap_words());
    batch.Add(ForMaintenance(Read(carving_.ChunkAt(chunks[i]), std::as_writable_bytes(bitmap))));
  }
  ++trips_;
  co_await batch;
  uint32_t most = shape.blocks / kWorthTakingOver;
  std::optional<Found> best;
  for (size_t i = 0; i < chunks.size(); ++i) {
    uint32_t given_back = 0;
    for (uint32_t word = 0; word < shape.bitmap_words(); ++word) {
      given_back += static_cast<uint32_t>(std::popcount(bitmaps[i * shape.bitmap_words() + word]));
    }
    if (given_back <= most) continue;
    most = given_back;
    best = Found{chunks[i], ownerless};
  }
  co_return best;
}

// ---- room for extents --------------------------------------------------------------------------------

Task<std::optional<uint32_t>> ChunkTable::FindRun(Op& op, uint32_t count) {
  std::optional<uint32_t> head = co_await FindRunBelow(op, count, run_end_);
  if (!head.has_value() && run_end_ < carving_.chunks()) {
    head = co_await FindRunBelow(op, count, carving_.chunks());
  }
  // The next one is looked for below: the others have just been seen to be taken, or are about to be.
  run_end_ = head.has_value() ? *head : carving_.chunks();
  co_return head;
}

Task<bool> ChunkTable::LeavesReserve(Op& op, BlockUse use, uint32_t count) {
  const uint64_t reserved = ReservedFrom(use);
  if (reserved == 0 || free_seen_ >= count + reserved) co_return true;
  uint64_t free = 0;
  for (uint64_t first = 0; first < carving_.chunks(); first += kManyWords) {
    std::vector<ChunkWord> words(std::min(kManyWords, carving_.chunks() - first));
    co_await ReadWords(op, first, words);
    free += static_cast<uint64_t>(std::count(words.begin(), words.end(), ChunkWord()));
  }
  free_seen_ = free;
  co_return free >= count + reserved;
}

Task<std::optional<uint32_t>> ChunkTable::FindRunBelow(Op& op, uint32_t count, uint64_t end) {
  uint64_t run = 0;
  uint64_t free = 0;
  uint64_t words = std::max<uint64_t>(kFewWords, count);
  while (end > 0) {
    words = std::min(words, end);
    std::vector<ChunkWord> read(words);
    co_await ReadWords(op, end - words, read);
    while (!read.empty()) {
      --end;
      const bool is_free = read.back() == ChunkWord();
      read.pop_back();
      run = is_free ? run + 1 : 0;
      free += is_free ? 1 : 0;
      if (run < count) continue;
      free_seen_ = free + static_cast<uint64_t>(std::count(read.begin(), read.end(), ChunkWord()));
      co_return static_cast<uint32_t>(end);
    }
    words = kManyWords;
  }
  free_seen_ = free;
  co_return std::nullopt;
}

}  // namespace farside::pool
