// Which chunks are evacuated: whether it takes that, and the sparsest ones that can be emptied (victims.h).
#include <algorithm>
#include <utility>

#include "pool/memory/allocator.h"
#include "pool/memory/victim_row.h"
#include "pool/mutants.h"

namespace farside::pool {

using fabric::FarAddr;
using fabric::Op;

namespace {

// An operation may need more than one block, and others come after it.
constexpr uint64_t kEnoughBlocks = 16;

}  // namespace

Task<uint32_t> Allocator::ChunksMissing(Op& op) {
  if (!starved_.has_value()) co_return 0u;
  const Starved starved = *std::exchange(starved_, std::nullopt);
  if (starved.bytes > classes().largest()) {
    const auto chunks = static_cast<uint32_t>(std::min(classes().ChunksOf(starved.bytes), carving_.chunks()));
    const std::optional<uint32_t> run = co_await table_.FindRun(op, chunks);
    if (!run.has_value()) co_return chunks;
    const bool leaves_reserve = co_await table_.LeavesReserve(op, starved.use, chunks);
    co_return leaves_reserve ? 0u : 1u;
  }
  const BlockKind kind{classes().ClassOf(starved.bytes), starved.use};
  uint64_t at_hand = 0;
  for (const Chunk* chunk : StateOf(kind).shelf.chunks())
    at_hand += chunk->evacuating ? 0 : chunk->free.size();
  if (at_hand >= kEnoughBlocks) co_return 0u;
  const std::optional<ChunkTable::Found> found = co_await table_.FindForBlocks(op, kind);
  co_return found.has_value() ? 0u : 1u;
}

Task<std::vector<Allocator::Victim>> Allocator::BeginEvacuation(Op& op, EvacuationLimits limits) {
  if (std::optional<Error> broken = CheckWhole()) co_return std::move(*broken);
  // Sparse chunks that were left behind become own ones first (evac/2).
  WorthTaking is_sparse = [this](ChunkWord word, uint32_t given_back) {
    const uint32_t blocks = classes().shape(word.argument()).blocks;
    const SparseChunk chunk{.blocks = blocks, .live = blocks - std::min(blocks, given_back)};
    return word.use() == BlockUse::kRecords && chunk.IsSparse();
  };
  co_await ReclaimOwnerless(op, std::move(is_sparse));
  std::vector<Chunk*> own = OwnChunks();
  co_await Harvest(op, own, /*thorough=*/true);
  std::vector<bool> is_free;
  if (limits.run > 1) {
    std::vector<ChunkWord> words(carving_.chunks());
    co_await table_.ReadWords(op, 0, words);
    for (const ChunkWord word : words) is_free.push_back(word == ChunkWord());
    // If another client takes what is to be claimed, fewer blocks fit, and perhaps another row.
    const VictimRow row = ChooseRunAndClaims(ChunksOfRecords(RetiredBlocks()), is_free, limits);
    for (const VictimRow::Claim& claim : row.claims) {
      co_await ClaimFree(op, claim.chunk, {claim.size_class, BlockUse::kRecords});
      is_free[claim.chunk] = false;
    }
  }
  // From here on nothing is awaited.
  const std::unordered_map<uint32_t, BlockSet> retired = RetiredBlocks();
  const std::vector<SparseChunk> candidates = ChunksOfRecords(retired);
  const std::vector<size_t> chosen =
      limits.run > 1 ? ChooseRun(candidates, is_free, limits) : ChooseSparsest(candidates, limits);
  std::vector<Victim> victims;
  for (const size_t index : chosen) {
    Chunk* const chunk = FindChunk(candidates[index].chunk);
    const auto waiting = retired.find(chunk->index);
    victims.push_back(BeginEvacuationOf(*chunk, waiting == retired.end() ? nullptr : &waiting->second));
  }
  co_return std::move(victims);
}

std::vector<SparseChunk> Allocator::ChunksOfRecords(
    const std::unordered_map<uint32_t, BlockSet>& retired) const {
  std::vector<SparseChunk> chunks;
  for (const Chunk* chunk : OwnChunks()) {
    if (chunk->kind.use != BlockUse::kRecords || chunk->evacuating) continue;
    const auto waiting = retired.find(chunk->index);
    const uint32_t given_up = waiting == retired.end() ? 0 : waiting->second.size();
    SparseChunk sparse{.chunk = chunk->index,
                       .size_class = chunk->kind.size_class,
                       .blocks = chunk->blocks,
                       .free = chunk->free.size(),
                       .live = chunk->blocks - chunk->free.size() - given_up};
    sparse.live_bytes = sparse.live * classes().shape(sparse.size_class).block_bytes;
    chunks.push_back(sparse);
  }
  return chunks;
}

std::unordered_map<uint32_t, BlockSet> Allocator::RetiredBlocks() const {
  std::unordered_map<uint32_t, BlockSet> retired;
  for (uint64_t number = retired_.first(); number < retired_.end(); ++number) {
    const Retired& item = retired_[number];
    const auto chunk = chunks_.find(item.position.chunk);
    if (item.done || item.position.is_extent() || chunk == chunks_.end()) continue;
    const uint32_t block = item.position.block;
    // A block that was freed twice is damage; it must not count twice.
    if (block >= chunk->second->blocks || chunk->second->free.Contains(block)) continue;
    retired.try_emplace(item.position.chunk, chunk->second->blocks).first->second.Insert(block);
  }
  return retired;
}

// INVARIANT evac/2.
Allocator::Victim Allocator::BeginEvacuationOf(Chunk& chunk, const BlockSet* retired) {
  if (!chunk.IsEmpty() && !Mutant(kHandsOutAndCopiesEarly))
    StateOf(chunk.kind).shelf.SetEvacuating(chunk, true);
  ++stats_.chunks_evacuated;
  Victim victim{.chunk = chunk.index, .block_bytes = classes().shape(chunk.kind.size_class).block_bytes};
  for (uint32_t block = 0; block < chunk.blocks; ++block) {
    const bool in_use = !chunk.free.Contains(block) && (retired == nullptr || !retired->Contains(block));
    if (in_use) victim.blocks.push_back(carving_.BlockAt(chunk.index, chunk.kind.size_class, block));
  }
  return victim;
}

void Allocator::EndEvacuation(uint32_t index) {
  Chunk* const chunk = FindChunk(index);
  if (chunk == nullptr || !chunk->evacuating) return;
  const std::unordered_map<uint32_t, BlockSet> retired = RetiredBlocks();
  const auto waiting = retired.find(index);
  const uint32_t unused = chunk->free.size() + (waiting == retired.end() ? 0 : waiting->second.size());
  if (unused < chunk->blocks) return StateOf(chunk->kind).shelf.SetEvacuating(*chunk, false);
  if (Mutant(kReleaseInGrace)) FreeRetired(*chunk);
}

// For the planted bug.
void Allocator::FreeRetired(Chunk& chunk) {
  for (uint64_t number = retired_.first(); number < retired_.end(); ++number) {
    Retired& item = retired_[number];
    if (item.done || item.position.is_extent() || item.position.chunk != chunk.index) continue;
    item.done = true;
    FreeBlock(chunk, item.position.block);
  }
}

bool Allocator::StopEvacuating(BlockKind kind) {
  Shelf& shelf = StateOf(kind).shelf;
  for (Chunk* chunk : shelf.chunks()) {
    if (chunk->evacuating) shelf.SetEvacuating(*chunk, false);
  }
  return shelf.Fullest() != nullptr;
}

}  // namespace farside::pool
