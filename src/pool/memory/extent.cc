// Extents: blocks larger than the largest size class, made of whole chunks in a row.
//
//   chunk     7              8           9           10
//   word      {extent, 4}    {rest, 1}   {rest, 2}   {rest, 3}
//   owner     the claimer    none        none        none
//
// INVARIANT alloc/5: the first chunk is claimed first and freed last. A client that dies in between leaves a
// first chunk that names it, and some of the rests; the next owner of the first chunk then frees them all.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "pool/memory/allocator.h"
#include "pool/memory/in_doubt.h"
#include "pool/mutants.h"

namespace farside::pool {

using fabric::Batch;
using fabric::Cas;
using fabric::FarAddr;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::Order;
using fabric::Read;

namespace {

constexpr int kMostAttempts = 1000;
constexpr int kGraceRounds = 4;
// A word changes its owner when its owner leaves or dies; more than this in a row is left for later.
constexpr int kMostOwners = 8;

uint64_t RestWord(uint32_t distance) { return ChunkWord(ChunkState::kExtentRest, distance, Owner()).word(); }
constexpr uint64_t kFreeWord = ChunkWord().word();

}  // namespace

Task<FarAddr> Allocator::AllocateExtent(Op& op, uint64_t bytes, BlockUse use) {
  if (std::optional<Error> broken = CheckWhole()) co_return std::move(*broken);
  // No size is known of a node that was out of reach when this client joined; for Allocate, no block fits it.
  if (carving_.chunks() == 0) {
    co_return Error(
        ErrorCode::kUnavailable,
        fmt::format("memory node {} is out of reach; try again when it is there", Index(membership_.node())));
  }
  const uint64_t chunks = classes().ChunksOf(bytes);
  if (chunks > ChunkWord::Argument::kMax || chunks > carving_.chunks()) {
    co_return Error(
        ErrorCode::kOutOfMemory,
        fmt::format("a block of {} bytes can never fit: node {} has {} chunks of {} bytes; write a "
                    "smaller value, or make a pool of more memory",
                    bytes, Index(membership_.node()), carving_.chunks(), classes().chunk_bytes()));
  }
  int attempts = 0;
  for (int round = 0; round <= 2 * kGraceRounds; ++round) {
    std::optional<uint32_t> head = co_await table_.FindRun(op, static_cast<uint32_t>(chunks));
    while (head.has_value()) {
      const bool leaves_reserve = co_await table_.LeavesReserve(op, use, static_cast<uint32_t>(chunks));
      if (!leaves_reserve) break;
      const bool claimed = co_await ClaimExtent(op, *head, static_cast<uint32_t>(chunks));
      if (claimed) co_return carving_.ChunkAt(*head);
      op.CountRetry();
      if (++attempts == kMostAttempts) {
        co_return Error(ErrorCode::kContended, "others took every run of chunks that was free; retry later");
      }
      head = co_await table_.FindRun(op, static_cast<uint32_t>(chunks));
    }
    if (round % 2 == 0) {
      co_await MakeRoom(op, {BlockPosition::kExtentClass, use});
    } else {
      const bool more = co_await WaitForGrace(op);
      if (!more) break;
    }
  }
  co_return OutOfMemory(bytes, use);
}

// False if another client has taken one of the chunks; then none is kept.
Task<bool> Allocator::ClaimExtent(Op& op, uint32_t head, uint32_t chunks) {
  for (uint32_t i = 0; i < chunks; ++i) {
    if (SkipIfOwned(head + i)) co_return false;
  }
  const ChunkWord mine(ChunkState::kExtent, chunks, self());
  InDoubt doubt(*this);
  ++stats_.trips;
  const uint64_t old =
      co_await op.InOrder(ForMaintenance(Cas(carving_.WordAt(head), kFreeWord, mine.word())));
  table_.Note(head, old == kFreeWord ? mine : ChunkWord(old));
  if (old != kFreeWord) {
    doubt.Resolve();
    co_return false;
  }
  bool complete = true;
  for (uint32_t first = 1; first < chunks && complete; first += fabric::kAnsweredVerbsPerRoundTrip) {
    Batch batch(op, Order::kTogether);
    for (uint32_t i = first; i < chunks && batch.size() < fabric::kAnsweredVerbsPerRoundTrip; ++i) {
      batch.Add(ForMaintenance(Cas(carving_.WordAt(head + i), kFreeWord, RestWord(i))));
    }
    ++stats_.trips;
    co_await batch;
    for (uint32_t i = 0; i < batch.size(); ++i) {
      const bool taken = batch.Old(i) == kFreeWord;
      table_.Note(head + first + i, taken ? ChunkWord(RestWord(first + i)) : ChunkWord(batch.Old(i)));
      complete &= taken;
    }
  }
  if (!complete) {
    co_await FreeRests(op, head, chunks);
    ++stats_.trips;
    co_await op.InOrder(ForMaintenance(Cas(carving_.WordAt(head), mine.word(), kFreeWord)));
    table_.Note(head, ChunkWord());
    doubt.Resolve();
    co_return false;
  }
  if (durable() && !Mutant(kExtentNotDurable)) co_await MakeWordsDurable(op, head, chunks);
  NoteFirstOwned();
  // The extent that began in here has been freed by another client.
  extents_.erase(extents_.lower_bound(head), extents_.lower_bound(head + chunks));
  extents_[head] = Extent{.chunks = chunks};
  stats_.chunks_claimed += chunks;
  doubt.Resolve();
  co_return true;
}

// A rest that is not there was never claimed, or has been freed by a client that died.
Task<Done> Allocator::FreeRests(Op& op, uint32_t head, uint32_t chunks) {
  for (uint32_t first = 1; first < chunks; first += fabric::kAnsweredVerbsPerRoundTrip) {
    Batch batch(op, Order::kTogether);
    for (uint32_t i = first; i < chunks && batch.size() < fabric::kAnsweredVerbsPerRoundTrip; ++i) {
      batch.Add(ForMaintenance(Cas(carving_.WordAt(head + i), RestWord(i), kFreeWord)));
    }
    ++stats_.trips;
    co_await batch;
    for (uint32_t i = 0; i < batch.size(); ++i) {
      if (batch.Old(i) != RestWord(first + i)) continue;
      table_.Note(head + first + i, ChunkWord());
      ++stats_.chunks_released;
    }
  }
  co_return Done{};
}

// Only the client that unlinked it does this, or a sweep that knows that no client will. So although the
// owner may change meanwhile, by leaving or by adoption, it is the same extent until its first chunk is free.
Task<bool> Allocator::FreeExtent(Op& op, uint32_t head, uint32_t chunks) {
  ++stats_.trips;
  ChunkWord word(co_await op.InOrder(ForMaintenance(Read<uint64_t>(carving_.WordAt(head)))));
  if (word.state() != ChunkState::kExtent || word.argument() != chunks) {
    ++stats_.nonsense;
    co_return true;
  }
  if (!Mutant(kExtentHeadFirst)) co_await FreeRests(op, head, chunks);
  for (int owners = 0; owners < kMostOwners; ++owners) {
    ++stats_.trips;
    const ChunkWord old(
        co_await op.InOrder(ForMaintenance(Cas(carving_.WordAt(head), word.word(), kFreeWord))));
    if (old == word) {
      if (old.owner() == self()) extents_.erase(head);
      table_.Note(head, ChunkWord());
      ++stats_.chunks_released;
      if (Mutant(kExtentHeadFirst)) co_await FreeRests(op, head, chunks);
      co_return true;
    }
    if (old.WithOwner(Owner()) != word.WithOwner(Owner())) {
      ++stats_.nonsense;
      co_return true;
    }
    word = old;
  }
  co_return false;
}

}  // namespace farside::pool
