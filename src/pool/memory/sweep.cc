// Why a sweep frees nothing that is in use.
//
// Let S be the sweeping client, t0 the construction, [t1, t2] the walk, and w an epoch read after t2. A
// suspect is a block of a chunk of S that was handed out at t0, is not on S's own list of retired blocks then
// or later, was not freed since, and was not marked. At t0 no operation of S was in flight, so none was about
// to publish it: it was reachable, or unlinked and waiting at some client X to be given back, or leaked.
//   - Reachable from t0 to t2: the walk has marked it (reach.h).
//   - Unlinked before t2, by an operation of X. Ready() says that X has settled beyond w, so everything it
//     unlinked in operations that began before it knew of w + 1 has been given back, and the harvest in
//     Finish() finds it there. Operations that began later began after t2. If X is fenced instead, it is
//     leaked.
//   - Leaked: the client that unlinked it did so before t2 and is dead. Ready() says that every operation in
//     flight, of S too, began after w was read, so none looks at it any more.
// A block that was given back and handed out again meanwhile was freed in between, and that clears the
// suspicion.
//
// Extents likewise; whether one was given back is seen by its word.
#include "pool/memory/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <vector>

#include "pool/mutants.h"

namespace farside::pool {

using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::Read;

namespace {

constexpr int kMostPauses = 10'000;
constexpr Nanos kPause = std::chrono::microseconds(2);

}  // namespace

Sweep::Sweep(Allocator& allocator)
    : allocator_(allocator),
      deaths_(allocator.membership_.control().deaths),
      takeovers_(allocator.takeovers_) {
  assert(!allocator_.sweeping_);
  for (const Allocator::Adoption& adoption : allocator_.adoptions_) adopted_.push_back(adoption.dead);
  allocator_.sweeping_ = true;
  for (const auto& [index, chunk] : allocator_.chunks_) {
    chunk->swept = true;
    chunk->suspects = BlockSet(chunk->blocks);
    for (uint32_t block = 0; block < chunk->blocks; ++block) {
      if (!chunk->free.Contains(block)) chunk->suspects.Insert(block);
    }
  }
  for (auto& [head, extent] : allocator_.extents_) extent.suspect = true;
  const RetiredQueue& retired = allocator_.retired_;
  for (uint64_t number = retired.first(); number < retired.end(); ++number) {
    if (!retired[number].done) allocator_.NotSuspect(retired[number].position);
  }
}

Sweep::~Sweep() {
  for (const auto& [index, chunk] : allocator_.chunks_) {
    chunk->swept = false;
    chunk->suspects = BlockSet();
  }
  for (auto& [head, extent] : allocator_.extents_) extent.suspect = false;
  allocator_.sweeping_ = false;
}

void Sweep::Mark(FarAddr block, uint64_t bytes) {
  const std::optional<uint32_t> index = allocator_.carving_.ChunkOf(block);
  if (!index.has_value()) return;
  Chunk* chunk = allocator_.FindChunk(*index);
  const std::optional<BlockPosition> position = allocator_.carving_.Locate(block, bytes);
  if (chunk == nullptr) {
    if (position.has_value() && position->is_extent()) allocator_.NotSuspect(*position);
    return;
  }
  if (!chunk->swept) return;
  if (position.has_value() && position->size_class == chunk->kind.size_class) {
    chunk->suspects.Erase(position->block);
    return;
  }
  // A pointer into the chunk that names none of its blocks: something is damaged, so better leak than free.
  ++allocator_.stats_.nonsense;
  chunk->suspects = BlockSet(chunk->blocks);
}

void Sweep::WalkEnded(uint64_t epoch) {
  walk_ended_ = epoch;
  ended_ = true;
}

bool Sweep::Ready(const RegistryView& view) const {
  if (!ended_) return false;
  if (Mutant(kSweepAtOnce)) return true;
  if (Mutant(kSweepUnderReaders)) return view.settled_epoch > walk_ended_;
  return view.settled_epoch > walk_ended_ && view.safe_epoch > walk_ended_;
}

Task<Done> Sweep::Finish(Op& op) {
  if (std::optional<Error> broken = allocator_.CheckWhole()) co_return std::move(*broken);
  co_await HarvestSuspects(op);
  for (const auto& [index, chunk] : allocator_.chunks_) {
    if (!chunk->swept) continue;
    while (!chunk->suspects.empty()) {
      allocator_.FreeBlock(*chunk, chunk->suspects.TakeLowest());
      ++allocator_.stats_.blocks_swept;
    }
  }
  co_await FreeSuspectExtents(op);
  allocator_.clean_deaths_ = deaths_;
  allocator_.clean_takeovers_ = takeovers_;
  for (Allocator::Adoption& adoption : allocator_.adoptions_) {
    const bool began_before = std::find(adopted_.begin(), adopted_.end(), adoption.dead) != adopted_.end();
    if (began_before && takeovers_ == allocator_.takeovers_) adoption.swept = true;
  }
  co_return Done{};
}

// A harvest that is under way in another coroutine knows of blocks that are given back, and has not freed
// them yet; so it is waited for.
Task<Done> Sweep::HarvestSuspects(Op& op) {
  std::vector<uint32_t> todo;
  for (const auto& [index, chunk] : allocator_.chunks_) {
    if (chunk->swept && !chunk->suspects.empty()) todo.push_back(index);
  }
  std::sort(todo.begin(), todo.end());
  for (int pauses = 0; !todo.empty(); ++pauses) {
    std::vector<Chunk*> idle;
    std::vector<uint32_t> busy;
    for (uint32_t index : todo) {
      Chunk* chunk = allocator_.FindChunk(index);
      if (chunk == nullptr || !chunk->swept) continue;
      if (chunk->harvesting) {
        busy.push_back(index);
      } else {
        idle.push_back(chunk);
      }
    }
    co_await allocator_.Harvest(op, idle, /*thorough=*/true);
    todo.swap(busy);
    if (todo.empty()) break;
    if (pauses == kMostPauses)
      co_return Error(ErrorCode::kContended, "a harvest does not end; sweep again later");
    co_await op.Pause(kPause);
  }
  co_return Done{};
}

Task<Done> Sweep::FreeSuspectExtents(Op& op) {
  std::vector<uint32_t> heads;
  for (const auto& [head, extent] : allocator_.extents_) {
    if (extent.suspect) heads.push_back(head);
  }
  for (uint32_t head : heads) {
    auto extent = allocator_.extents_.find(head);
    if (extent == allocator_.extents_.end() || !extent->second.suspect) continue;
    const ChunkWord mine(ChunkState::kExtent, extent->second.chunks, allocator_.self());
    ++allocator_.stats_.trips;
    const ChunkWord word(
        co_await op.InOrder(ForMaintenance(Read<uint64_t>(allocator_.carving_.WordAt(head)))));
    extent = allocator_.extents_.find(head);
    if (extent == allocator_.extents_.end() || !extent->second.suspect) continue;
    allocator_.extents_.erase(extent);
    if (word != mine) continue;  // freed by another client
    const bool freed = co_await allocator_.FreeExtent(op, head, mine.argument());
    if (freed) ++allocator_.stats_.blocks_swept;
  }
  co_return Done{};
}

}  // namespace farside::pool
