// Blocks of own chunks, and where more of them come from. Extents are in extent.cc, what happens to retired
// blocks in reclaim.cc, evacuation in evacuate.cc, taking over and leaving in adopt.cc, the sweep in
// sweep.cc.
#include "pool/memory/allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "pool/memory/in_doubt.h"
#include "pool/mutants.h"
#include "pool/scoped_flag.h"

namespace farside::pool {

using fabric::Cas;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::Read;
using fabric::Unreachable;
using fabric::Write;

namespace {

// Each attempt found that other operations had taken what was there.
constexpr int kMostAttempts = 10'000;
// For another operation of the same client.
constexpr int kMostPauses = 10'000;
// Each attempt found that others had taken the chunk.
constexpr int kMostClaims = 1000;
// How often a full node is asked for grace before the answer is that it is full.
constexpr int kGraceRounds = 4;
// A node that is full is not searched from end to end again before this has passed.
constexpr Nanos kNoRoomPause = std::chrono::milliseconds(1);
constexpr Nanos kPause = std::chrono::microseconds(2);
constexpr uint32_t kWordsHarvestedByRefill = fabric::kAnsweredVerbsPerRoundTrip;
constexpr uint32_t kMostHarvestMisses = 4;

size_t LargestBitmap(const SizeClasses& classes) {
  return classes.count() == 0 ? 0 : static_cast<size_t>(classes.shape(0).bitmap_bytes());
}

Error Contended(int attempts) {
  return Error(ErrorCode::kContended,
               fmt::format("gave up after {} attempts to get memory; retry later", attempts));
}

}  // namespace

Allocator::Allocator(Membership& membership)
    : membership_(membership),
      carving_(membership.node(), membership.geometry()),
      table_(carving_, Number(membership.client().id())),
      states_(kBlockUses * carving_.classes().count()),
      zero_(LargestBitmap(carving_.classes())) {}

// ---- blocks of own chunks ----------------------------------------------------------------------------

std::optional<FarAddr> Allocator::TryAllocate(uint64_t bytes, BlockUse use) {
  if (bytes > classes().largest()) return std::nullopt;
  return Take({classes().ClassOf(bytes), use});
}

std::optional<FarAddr> Allocator::Take(BlockKind kind) {
  ClassState& state = StateOf(kind);
  Chunk* chunk = state.shelf.Fullest();
  if (chunk == nullptr) return std::nullopt;
  state.used_at = reclaims_;
  return carving_.BlockAt(chunk->index, kind.size_class, state.shelf.Take(*chunk));
}

Chunk* Allocator::FindChunk(uint32_t index) {
  const auto found = chunks_.find(index);
  return found == chunks_.end() ? nullptr : found->second.get();
}

std::vector<Chunk*> Allocator::OwnChunks() const {
  std::vector<Chunk*> all;
  for (const auto& [index, chunk] : chunks_) all.push_back(chunk.get());
  std::sort(all.begin(), all.end(), [](const Chunk* a, const Chunk* b) { return a->index < b->index; });
  return all;
}

void Allocator::AddChunk(uint32_t index, BlockKind kind, bool all_free) {
  if (FindChunk(index) != nullptr) {
    // Two operations have claimed it: its word was damaged in between. What is known of it, and perhaps being
    // harvested, stays.
    ++stats_.nonsense;
    return;
  }
  NoteFirstOwned();
  extents_.erase(index);  // if there was one, another client has freed it
  auto chunk = std::make_unique<Chunk>(index, kind, classes().shape(kind.size_class).blocks);
  if (all_free) chunk->free.InsertAll();
  Chunk& added = *chunk;
  chunks_[index] = std::move(chunk);
  StateOf(kind).shelf.Add(added);
  ++stats_.chunks_claimed;
}

bool Allocator::SkipIfOwned(uint32_t index) {
  if (FindChunk(index) == nullptr) return false;
  table_.Note(index, ChunkTable::kUnsound);
  return true;
}

Chunk* Allocator::ClassState::NextToHarvest() {
  const std::span<Chunk* const> all = shelf.chunks();
  if (next_harvest == 0 || next_harvest > all.size()) next_harvest = all.size();
  return all[--next_harvest];
}

std::vector<Chunk*> Allocator::ClassState::SomeToHarvest() {
  std::vector<Chunk*> some(std::min(shelf.chunks().size(), fabric::kAnsweredVerbsPerRoundTrip));
  for (Chunk*& chunk : some) chunk = NextToHarvest();
  return some;
}

void Allocator::ForgetChunk(Chunk& chunk) {
  StateOf(chunk.kind).shelf.Remove(chunk);
  chunks_.erase(chunk.index);
}

void Allocator::FreeBlock(Chunk& chunk, uint32_t block) {
  if (chunk.swept) chunk.suspects.Erase(block);
  if (!StateOf(chunk.kind).shelf.Put(chunk, block)) ++stats_.nonsense;
}

// A client that owned nothing has nothing that a client that is dead by now could have leaked.
void Allocator::NoteFirstOwned() {
  if (!chunks_.empty() || !extents_.empty()) return;
  clean_deaths_ = membership_.control().deaths;
  clean_takeovers_ = takeovers_;
}

void Allocator::FreeUnpublished(FarAddr block, uint64_t bytes) {
  const std::optional<BlockPosition> position = carving_.Locate(block, bytes);
  if (position.has_value() && position->is_extent()) {
    // To be freed by the next Reclaim, with trips.
    NotSuspect(*position);
    retired_.Push({.position = *position, .never_seen = true, .birth = std::numeric_limits<uint64_t>::max()});
    return;
  }
  Chunk* chunk = position.has_value() ? FindChunk(position->chunk) : nullptr;
  if (chunk == nullptr || chunk->kind.size_class != position->size_class) {
    ++stats_.nonsense;
    return;
  }
  FreeBlock(*chunk, position->block);
}

void Allocator::Retire(FarAddr block, uint64_t bytes, uint64_t birth) {
  const std::optional<BlockPosition> position = carving_.Locate(block, bytes);
  if (!position.has_value()) {
    // A pointer that no correct client wrote; what it should have named is lost until a sweep.
    ++stats_.nonsense;
    return;
  }
  NotSuspect(*position);
  Retired item{.position = *position, .birth = birth};
  if (Mutant(kStampTooEarly)) item.stamp = membership_.known_epoch();
  retired_.Push(item);
}

void Allocator::FreeUnused(FarAddr block, uint64_t bytes, uint64_t birth) {
  const std::optional<BlockPosition> position = carving_.Locate(block, bytes);
  if (!position.has_value()) {
    ++stats_.nonsense;
    return;
  }
  NotSuspect(*position);
  retired_.Push({.position = *position, .never_seen = true, .birth = birth});
}

// For what is reachable, and what this client is going to give back itself: not leaked.
void Allocator::NotSuspect(const BlockPosition& position) {
  if (position.is_extent()) {
    const auto extent = extents_.find(position.chunk);
    if (extent != extents_.end()) extent->second.suspect = false;
    return;
  }
  Chunk* chunk = FindChunk(position.chunk);
  if (chunk != nullptr && chunk->swept && position.block < chunk->blocks)
    chunk->suspects.Erase(position.block);
}

uint64_t Allocator::OldestUnsettled() const {
  if (Mutant(kSettledTooEarly)) return std::numeric_limits<uint64_t>::max();
  return retired_.OldestBirth();
}

bool Allocator::MayHoldLeaks() const {
  if (chunks_.empty() && extents_.empty()) return false;
  return clean_deaths_ != membership_.control().deaths || clean_takeovers_ != takeovers_;
}

bool Allocator::SweepDue() const {
  return MayHoldLeaks() || std::any_of(adoptions_.begin(), adoptions_.end(),
                                       [](const Adoption& adoption) { return !adoption.swept; });
}

AllocatorStats Allocator::stats() const {
  AllocatorStats stats = stats_;
  stats.trips += table_.trips();
  stats.nonsense += table_.unsound_seen();
  stats.chunks_owned = chunks_.size();
  stats.extents_owned = extents_.size();
  stats.bytes_owned = chunks_.size() * classes().chunk_bytes();
  for (const auto& [index, chunk] : chunks_) {
    const uint64_t block_bytes = classes().shape(chunk->kind.size_class).block_bytes;
    stats.bytes_free_local += chunk->free.size() * block_bytes;
    stats.bytes_handed_out += (chunk->blocks - chunk->free.size()) * block_bytes;
  }
  for (const auto& [head, extent] : extents_) {
    stats.bytes_owned += extent.chunks * classes().chunk_bytes();
    stats.bytes_handed_out += extent.chunks * classes().chunk_bytes();
  }
  stats.retired_pending = retired_.size();
  return stats;
}

// ---- getting more ------------------------------------------------------------------------------------

std::optional<Error> Allocator::CheckWhole() const {
  if (!lost_) return std::nullopt;
  return Error(ErrorCode::kUnavailable,
               fmt::format("this client's memory on node {} was cut off in the middle of a change; "
                           "reconnect as a new client",
                           Index(membership_.node())));
}

Error Allocator::OutOfMemory(uint64_t bytes, BlockUse use) {
  starved_ = Starved{.bytes = bytes, .use = use};
  std::string message = fmt::format(
      "node {} has no room for {} bytes: {} of its {} chunks of {} bytes are free", Index(membership_.node()),
      bytes, table_.free_seen(), carving_.chunks(), classes().chunk_bytes());
  if (use == BlockUse::kRecords && table_.free_seen() > 0)
    message += " (the last ones are for the tables' own use)";
  if (!retired_.empty())
    message += fmt::format(", and {} freed blocks wait for readers to move on", retired_.size());
  return Error(ErrorCode::kOutOfMemory, message +
                                            "; delete records or drop a table, or export the tables and "
                                            "import them into a pool of more memory");
}

Task<FarAddr> Allocator::Allocate(Op& op, uint64_t bytes, BlockUse use) {
  if (bytes > classes().largest()) {
    const FarAddr extent = co_await AllocateExtent(op, bytes, use);
    co_return extent;
  }
  const BlockKind kind{classes().ClassOf(bytes), use};
  int pauses = 0;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    std::optional<FarAddr> block = Take(kind);
    // Another operation of this client is fetching more. After long it is not waited for: its trip may be
    // held up, or it has failed and was not destroyed yet.
    while (!block.has_value() && StateOf(kind).refilling > 0 && pauses < kMostPauses) {
      ++pauses;
      op.CountRetry();
      co_await op.Pause(kPause);
      block = Take(kind);
    }
    if (block.has_value()) co_return *block;
    const bool refilled = co_await Refill(op, kind);
    if (!refilled) co_return OutOfMemory(bytes, use);
  }
  co_return Contended(kMostAttempts);
}

// False if the node is full. The steps are in the order of what they cost; each is repeated only after
// another one has changed something.
Task<bool> Allocator::Refill(Op& op, BlockKind kind) {
  if (std::optional<Error> broken = CheckWhole()) co_return std::move(*broken);
  const ScopedCount refilling(StateOf(kind).refilling);
  co_await HarvestKind(op, kind);
  for (int round = 0; round <= kGraceRounds; ++round) {
    if (StateOf(kind).shelf.Fullest() != nullptr) co_return true;
    bool claimed = co_await ClaimChunk(op, kind);
    if (claimed) co_return true;
    co_await MakeRoom(op, kind);
    if (StateOf(kind).shelf.Fullest() != nullptr) co_return true;
    claimed = co_await ClaimChunk(op, kind);
    if (claimed) co_return true;
    const bool more = co_await WaitForGrace(op);
    if (!more) break;
  }
  co_return StopEvacuating(kind);
}

// Some of the chunks of a class. If they yield nothing, the next refills do not try. To clear a bitmap of
// many words takes more trips than to claim a chunk; that is left to the next Reclaim, for which no operation
// waits.
Task<Done> Allocator::HarvestKind(Op& op, BlockKind kind) {
  ClassState& state = StateOf(kind);
  if (classes().shape(kind.size_class).bitmap_words() > kWordsHarvestedByRefill) {
    state.harvest_wanted = true;
    co_return Done{};
  }
  if (state.harvest_pause > 0) {
    --state.harvest_pause;
    co_return Done{};
  }
  std::vector<Chunk*> chunks = state.SomeToHarvest();
  if (chunks.empty()) co_return Done{};
  const uint64_t blocks = co_await Harvest(op, chunks, /*thorough=*/false);
  state.harvest_misses = blocks > 0 ? 0 : std::min(state.harvest_misses + 1, kMostHarvestMisses);
  state.harvest_pause = (1u << state.harvest_misses) - 1;
  co_return Done{};
}

// False if there is none.
Task<bool> Allocator::ClaimChunk(Op& op, BlockKind kind) {
  for (int attempt = 0; attempt < kMostClaims; ++attempt) {
    const std::optional<ChunkTable::Found> found = co_await table_.FindForBlocks(op, kind);
    if (!found.has_value()) co_return false;
    if (found->word == ChunkWord()) {
      const bool claimed = co_await ClaimFree(op, found->chunk, kind);
      if (claimed) co_return true;
    } else {
      co_await ClaimOwnerless(op, *found);
      if (StateOf(kind).shelf.Fullest() != nullptr) co_return true;
    }
    op.CountRetry();
  }
  co_return Contended(kMostClaims);
}

// If this client dies between the two trips, the bitmap holds anything: bits of blocks that are free, like
// all blocks of this chunk, so its adopter may believe them (alloc/6).
Task<bool> Allocator::ClaimFree(Op& op, uint32_t chunk, BlockKind kind) {
  if (SkipIfOwned(chunk)) co_return false;
  const ChunkWord mine(ChunkState::kBlocks, kind.size_class, self(), kind.use);
  InDoubt doubt(*this);
  ++stats_.trips;
  const uint64_t old =
      co_await op.InOrder(ForMaintenance(Cas(carving_.WordAt(chunk), ChunkWord().word(), mine.word())));
  const bool claimed = old == ChunkWord().word();
  table_.Note(chunk, claimed ? mine : ChunkWord(old));
  if (claimed) {
    // No client holds a block of it, so no atomic can be on its way to the bitmap.
    const auto bitmap = std::span(zero_).first(classes().shape(kind.size_class).bitmap_bytes());
    ++stats_.trips;
    co_await op.InOrder(ForMaintenance(Unreachable(Write(carving_.ChunkAt(chunk), bitmap))));
    if (durable() && !Mutant(kChunkNotDurable)) co_await MakeWordsDurable(op, chunk, 1);
    AddChunk(chunk, kind, /*all_free=*/true);
  }
  doubt.Resolve();
  co_return claimed;
}

Task<Done> Allocator::MakeWordsDurable(Op& op, uint64_t first, uint64_t chunks) {
  std::vector<ByteRange> words(1);
  words[0] = {carving_.WordAt(first).offset, chunks * sizeof(ChunkWord)};
  ++stats_.trips;
  co_await MakeDurable(op, membership_.node(), std::move(words));
  co_return Done{};
}

Task<Done> Allocator::ClaimOwnerless(Op& op, ChunkTable::Found found) {
  std::vector<ChunkTable::Found> one = {found};
  const uint64_t taken = co_await TakeOver(op, std::move(one), /*may_leak=*/false);
  Chunk* chunk = FindChunk(found.chunk);
  if (taken == 0 || chunk == nullptr) co_return Done{};
  std::vector<Chunk*> chunks = {chunk};
  co_await Harvest(op, chunks, /*thorough=*/true);
  co_return Done{};
}

Task<Done> Allocator::MakeRoom(Op& op, BlockKind wanted) {
  const Nanos now = membership_.client().Now();
  if (no_room_since_.has_value() && now - *no_room_since_ < kNoRoomPause) co_return Done{};
  no_room_since_ = now;
  co_await GiveUpSpares(op);
  WorthTaking is_wanted = [wanted](ChunkWord word, uint32_t given_back) {
    return given_back > 0 && BlockKind{word.argument(), word.use()} == wanted;
  };
  co_await ReclaimOwnerless(op, std::move(is_wanted));
  co_return Done{};
}

Task<Done> Allocator::GiveUpSpares(Op& op) {
  if (std::optional<Error> broken = CheckWhole()) co_return std::move(*broken);
  std::vector<Chunk*> own = OwnChunks();
  co_await Harvest(op, own, /*thorough=*/true);
  co_await Release(op, /*keep_spares=*/false);
  co_return Done{};
}

Task<bool> Allocator::WaitForGrace(Op& op) {
  if (retired_.empty() || !ask_for_grace_) co_return false;
  co_await ask_for_grace_(op);
  no_room_since_.reset();
  co_return true;
}

}  // namespace farside::pool
