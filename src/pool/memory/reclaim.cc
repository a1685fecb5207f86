// What becomes of retired blocks: they are given back, harvested by their owners, and empty chunks are
// released.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "pool/memory/allocator.h"
#include "pool/memory/in_doubt.h"
#include "pool/mutants.h"

namespace farside::pool {

using fabric::Cas;
using fabric::Faa;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::Order;
using fabric::Read;
using fabric::SmallBatch;

namespace {

constexpr size_t kAtomicsPerTrip = fabric::kAnsweredVerbsPerRoundTrip;
// Blocks of others that are sorted at once, so that those of one word share an atomic.
constexpr size_t kGathered = 1024;
// One of so many reclaims looks at own chunks, whether others have given something back.
constexpr uint64_t kReclaimsPerHarvest = 8;
constexpr size_t kHarvestedAtOnce = 16;
// A chunk is harvested if this part of its blocks was given back, if it can be released, or if it takes one
// atomic.
constexpr uint32_t kWorthHarvesting = 4;
// The last empty chunk of a class stays for as many reclaims after its last use.
constexpr uint64_t kSpareReclaims = 64;

Error DoubleFree(FarAddr at, uint64_t bits) {
  return Error(
      ErrorCode::kCorrupt,
      fmt::format("blocks {:#x} of the bitmap word at {:#x} were freed twice; run a check of the pool", bits,
                  at.offset));
}

// Clears the marks of chunks that were being harvested, also if the coroutine is destroyed.
class HarvestMarks {
 public:
  explicit HarvestMarks(std::span<Chunk*> chunks)
      : chunks_(chunks.begin(), std::remove_if(chunks.begin(), chunks.end(),
                                               [](const Chunk* chunk) { return chunk->harvesting; })) {
    for (Chunk* chunk : chunks_) chunk->harvesting = true;
  }
  HarvestMarks(const HarvestMarks&) = delete;
  HarvestMarks& operator=(const HarvestMarks&) = delete;
  ~HarvestMarks() {
    for (Chunk* chunk : chunks_) chunk->harvesting = false;
  }
  // The chunks that no other operation is harvesting.
  std::span<Chunk* const> chunks() const { return chunks_; }

 private:
  const std::span<Chunk*> chunks_;
};

}  // namespace

Task<Done> Allocator::Reclaim(Op& op, uint64_t safe_epoch) {
  if (std::optional<Error> broken = CheckWhole()) co_return std::move(*broken);
  if (settling_) co_return Done{};
  settling_ = true;
  InDoubt doubt(*this);  // a second Reclaim would not know what is on its way
  ++reclaims_;
  Result<Done> given_back = co_await GiveBack(op, safe_epoch).Outcome();
  if (given_back.ok()) given_back = co_await HarvestWanted(op).Outcome();
  if (given_back.ok() && reclaims_ % kReclaimsPerHarvest == 0) {
    const Result<uint64_t> harvested = co_await HarvestSome(op).Outcome();
    if (!harvested.ok()) given_back = harvested.error();
  }
  if (given_back.ok()) {
    const Result<uint64_t> released = co_await Release(op, /*keep_spares=*/true).Outcome();
    if (!released.ok()) given_back = released.error();
  }
  if (given_back.ok() || given_back.error().code() == ErrorCode::kCorrupt) doubt.Resolve();
  settling_ = false;
  co_return given_back;
}

// ---- giving back -------------------------------------------------------------------------------------

// INVARIANT alloc/3: kept by the comparison of stamps. Stamps rise along the queue.
Task<Done> Allocator::GiveBack(Op& op, uint64_t safe_epoch) {
  bits_.clear();
  for (uint64_t number = retired_.first(); number < retired_.end(); ++number) {
    const Retired& item = retired_[number];
    if (item.done) continue;
    if (!item.MayGiveBack(safe_epoch) && !Mutant(kReuseAtOnce)) {
      if (number >= retired_.end_of_never_seen()) break;
      continue;
    }
    const BlockPosition position = item.position;
    if (position.is_extent()) {
      const bool freed = co_await FreeExtent(op, position.chunk, position.block);
      if (!freed) break;
      retired_[number].done = true;
    } else if (Chunk* own = FindChunk(position.chunk)) {
      if (own->kind.size_class == position.size_class) {
        FreeBlock(*own, position.block);
      } else {
        ++stats_.nonsense;
      }
      retired_[number].done = true;
    } else {
      const FarAddr at = carving_.BitmapWordAt(position.chunk, position.block / 64);
      bits_.push_back({.at = at.offset, .bit = uint64_t{1} << (position.block % 64), .number = number});
      if (bits_.size() == kGathered) co_await GiveBackToOthers(op);
    }
  }
  co_await GiveBackToOthers(op);
  retired_.PopDone();
  co_return Done{};
}

// INVARIANT alloc/1, alloc/2: the block was handed out, so its bit is clear, and stays so until this adds it.
// The chunk cannot have changed since (alloc/4), even if it has another owner now.
Task<Done> Allocator::GiveBackToOthers(Op& op) {
  std::sort(bits_.begin(), bits_.end(),
            [](const GiveBackBit& a, const GiveBackBit& b) { return a.at < b.at; });
  size_t done = 0;
  while (done < bits_.size()) {
    SmallBatch<kAtomicsPerTrip> batch(op, Order::kTogether);
    std::array<FarAddr, kAtomicsPerTrip> words;
    std::array<uint64_t, kAtomicsPerTrip> added;
    size_t end = done;
    while (end < bits_.size() && batch.size() < kAtomicsPerTrip) {
      const FarAddr at = membership_.At(bits_[end].at);
      uint64_t bits = 0;
      for (; end < bits_.size() && bits_[end].at == at.offset; ++end) {
        if ((bits & bits_[end].bit) != 0) ++stats_.nonsense;  // retired twice
        bits |= bits_[end].bit;
      }
      const size_t word = batch.Add(ForMaintenance(Faa(at, bits)));
      words[word] = at;
      added[word] = bits;
    }
    ++stats_.trips;
    co_await batch;
    stats_.blocks_given_back += end - done;
    for (; done < end; ++done) retired_[bits_[done].number].done = true;
    for (size_t i = 0; i < batch.size(); ++i) {
      if ((batch.Old(i) & added[i]) == 0) continue;
      co_return DoubleFree(words[i], batch.Old(i) & added[i]);
    }
  }
  bits_.clear();
  co_return Done{};
}

// ---- harvesting --------------------------------------------------------------------------------------

// What refills have left to this: as many frees as it takes to use up a chunk lie between two looks at a few
// chunks, so none is far beyond what makes it worth harvesting.
Task<Done> Allocator::HarvestWanted(Op& op) {
  for (ClassState& state : states_) {
    if (!state.harvest_wanted) continue;
    state.harvest_wanted = false;
    std::vector<Chunk*> chunks = state.SomeToHarvest();
    co_await Harvest(op, chunks, /*thorough=*/false);
  }
  co_return Done{};
}

// The chunks of all classes in turn, a few at a time.
Task<uint64_t> Allocator::HarvestSome(Op& op) {
  std::array<Chunk*, kHarvestedAtOnce> chunks;
  size_t count = 0;
  for (uint32_t i = 0; i < states_.size() && count < kHarvestedAtOnce; ++i) {
    ClassState& state = states_[next_harvest_state_];
    next_harvest_state_ = (next_harvest_state_ + 1) % static_cast<uint32_t>(states_.size());
    const std::span<Chunk* const> all = state.shelf.chunks();
    for (size_t j = 0; j < all.size() && count < kHarvestedAtOnce; ++j) {
      Chunk* chunk = state.NextToHarvest();
      if (!chunk->IsEmpty()) chunks[count++] = chunk;
    }
  }
  const uint64_t blocks = co_await Harvest(op, std::span(chunks).first(count), /*thorough=*/false);
  co_return blocks;
}

Task<uint64_t> Allocator::Harvest(Op& op, std::span<Chunk*> chunks, bool thorough) {
  const HarvestMarks marks(chunks);
  const std::span<Chunk* const> all = marks.chunks();
  uint64_t blocks = 0;
  std::vector<GivenBack> given_back;
  for (size_t first = 0; first < all.size(); first += kHarvestedAtOnce) {
    const std::span<Chunk* const> some = all.subspan(first, std::min(kHarvestedAtOnce, all.size() - first));
    given_back.clear();
    co_await FindGivenBack(op, some, thorough, given_back);
    const uint64_t freed = co_await ClearGivenBack(op, given_back);
    blocks += freed;
  }
  co_return blocks;
}

// The bits of these chunks that are worth clearing. A bit that is set stays until it is cleared here; others
// may appear meanwhile.
Task<Done> Allocator::FindGivenBack(Op& op, std::span<Chunk* const> chunks, bool thorough,
                                    std::vector<GivenBack>& found) {
  size_t words = 0;
  for (const Chunk* chunk : chunks) words += classes().shape(chunk->kind.size_class).bitmap_words();
  if (words == 0) co_return Done{};
  // The memory of the last look; a second one at the same time gets its own.
  std::vector<uint64_t> bitmaps = std::move(bitmaps_);
  bitmaps.resize(words);
  SmallBatch<kHarvestedAtOnce> batch(op, Order::kTogether);
  size_t at = 0;
  for (const Chunk* chunk : chunks) {
    const auto bitmap =
        std::span(bitmaps).subspan(at, classes().shape(chunk->kind.size_class).bitmap_words());
    batch.Add(ForMaintenance(Read(carving_.ChunkAt(chunk->index), std::as_writable_bytes(bitmap))));
    at += bitmap.size();
  }
  ++stats_.trips;
  co_await batch;
  at = 0;
  for (Chunk* chunk : chunks) {
    const auto bitmap = std::span<const uint64_t>(bitmaps).subspan(
        at, classes().shape(chunk->kind.size_class).bitmap_words());
    at += bitmap.size();
    if (!thorough && !IsWorthHarvesting(*chunk, bitmap)) continue;
    for (uint32_t word = 0; word < bitmap.size(); ++word) {
      if (bitmap[word] != 0) found.push_back({.chunk = chunk, .word = word, .bits = bitmap[word]});
    }
  }
  bitmaps_ = std::move(bitmaps);
  co_return Done{};
}

bool Allocator::IsWorthHarvesting(const Chunk& chunk, std::span<const uint64_t> bitmap) {
  uint32_t bits = 0;
  for (uint64_t word : bitmap) bits += static_cast<uint32_t>(std::popcount(word));
  if (bits == 0) return false;
  return bitmap.size() == 1 || bits >= chunk.blocks / kWorthHarvesting ||
         bits + chunk.free.size() >= chunk.blocks;
}

// INVARIANT alloc/2: blocks become free only when their bits are known to be clear. If this client dies in
// between, they are handed out and reached by no table (alloc/6).
Task<uint64_t> Allocator::ClearGivenBack(Op& op, std::span<const GivenBack> given_back) {
  uint64_t blocks = 0;
  for (size_t first = 0; first < given_back.size(); first += kAtomicsPerTrip) {
    const auto some = given_back.subspan(first, std::min(kAtomicsPerTrip, given_back.size() - first));
    SmallBatch<kAtomicsPerTrip> batch(op, Order::kTogether);
    for (const GivenBack& word : some) {
      const FarAddr at = carving_.BitmapWordAt(word.chunk->index, word.word);
      batch.Add(ForMaintenance(Faa(at, uint64_t{0} - word.bits)));
    }
    InDoubt doubt(*this);
    ++stats_.trips;
    co_await batch;
    doubt.Resolve();
    for (size_t i = 0; i < some.size(); ++i) {
      const GivenBack& word = some[i];
      if ((batch.Old(i) & word.bits) != word.bits) {
        co_return DoubleFree(carving_.BitmapWordAt(word.chunk->index, word.word), word.bits & ~batch.Old(i));
      }
      uint64_t bits = word.bits & classes().shape(word.chunk->kind.size_class).word_mask(word.word);
      if (Mutant(kHarvestTooMuch)) bits |= batch.Old(i);
      blocks += static_cast<uint64_t>(std::popcount(bits));
      for (; bits != 0; bits &= bits - 1) {
        FreeBlock(*word.chunk, word.word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
      }
    }
  }
  stats_.blocks_harvested += blocks;
  co_return blocks;
}

// ---- releasing ---------------------------------------------------------------------------------------

// INVARIANT alloc/4: an empty chunk has no bit set and no client that could set one. It is forgotten first,
// so that no block of it is handed out while its word is on its way.
Task<uint64_t> Allocator::Release(Op& op, bool keep_spares) {
  uint64_t released = 0;
  while (true) {
    const std::vector<ChunkTable::Found> empty = TakeEmptyChunks(keep_spares);
    if (empty.empty()) co_return released;
    InDoubt doubt(*this);
    SmallBatch<kAtomicsPerTrip> batch(op, Order::kTogether);
    for (const ChunkTable::Found& found : empty) {
      batch.Add(ForMaintenance(Cas(carving_.WordAt(found.chunk), found.word.word(), ChunkWord().word())));
    }
    ++stats_.trips;
    co_await batch;
    for (size_t i = 0; i < empty.size(); ++i) {
      if (batch.Old(i) != empty[i].word.word()) {
        co_return Error(ErrorCode::kCorrupt,
                        fmt::format("chunk {} of node {} was taken from its owner, which is alive",
                                    empty[i].chunk, Index(membership_.node())));
      }
      table_.Note(empty[i].chunk, ChunkWord());
    }
    doubt.Resolve();
    released += empty.size();
    stats_.chunks_released += empty.size();
  }
}

std::vector<ChunkTable::Found> Allocator::TakeEmptyChunks(bool keep_spares) {
  std::vector<ChunkTable::Found> taken;
  for (ClassState& state : states_) {
    const bool in_use = reclaims_ - state.used_at < kSpareReclaims;
    bool keep_one = keep_spares && in_use && !state.shelf.HasPartlyFree();
    for (Chunk* chunk = state.shelf.FirstEmpty(); chunk != nullptr && taken.size() < kAtomicsPerTrip;) {
      Chunk* const next = chunk->next;
      if (keep_one) {
        keep_one = false;
      } else if (!chunk->harvesting) {
        const BlockKind kind = chunk->kind;
        taken.push_back({chunk->index, ChunkWord(ChunkState::kBlocks, kind.size_class, self(), kind.use)});
        ForgetChunk(*chunk);
      }
      chunk = next;
    }
  }
  return taken;
}

}  // namespace farside::pool
