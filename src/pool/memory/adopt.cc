// How chunks and extents change hands: from dead and departed clients to this client, and from this client to
// no owner.
//
// INVARIANT alloc/7. A client that dies forgets the blocks it was about to give back. They lie in chunks of
// all owners, so every owner sweeps after a death; the counter of deaths, which every sync reads together
// with the epoch, says so. What would be missed is a chunk that has no owner when the others are swept, or
// changes hands at that time:
//   - The adopter takes the chunks without owner too, and does so again after its sweep, before it releases
//     the slot.
//   - A client that leaves a chunk knows of no death that it has not swept for. If one happens right now,
//     the adopter's sweep waits for this client to sync, which it does not while it leaves, or to be gone,
//     and then the adopter's second look finds the chunk.
//   - A client that takes a chunk without owner in order to allocate reads the registry afterwards. Slots of
//     dead clients are released after the second look, so either that look came later and found the chunk
//     owned by a client that saw the dead one, or there is nothing to find.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "pool/memory/allocator.h"
#include "pool/memory/in_doubt.h"
#include "pool/mutants.h"

namespace farside::pool {

using fabric::Batch;
using fabric::Cas;
using fabric::Faa;
using fabric::ForMaintenance;
using fabric::Op;
using fabric::Order;
using fabric::Read;

namespace {

constexpr size_t kAtomicsPerTrip = fabric::kAnsweredVerbsPerRoundTrip;

bool IsAnybodyFenced(std::span<const ClientSlot> registry) {
  return std::any_of(registry.begin(), registry.end(),
                     [](const ClientSlot& slot) { return slot.state.state() == ClientState::kFenced; });
}

Error NotYet(std::string_view what) {
  return Error(ErrorCode::kContended, fmt::format("cannot leave yet: {}", what));
}

}  // namespace

// ---- taking ------------------------------------------------------------------------------------------

Task<uint64_t> Allocator::Adopt(Op& op, Owner dead) {
  if (std::optional<Error> broken = CheckWhole()) co_return std::move(*broken);
  if (Mutant(kSkipAdoption)) co_return uint64_t{0};
  // The slot of its previous client was released.
  std::erase_if(adoptions_,
                [&](const Adoption& one) { return one.dead.slot() == dead.slot() && one.dead != dead; });
  uint64_t taken = 0;
  for (uint64_t first = 0; first < carving_.chunks(); first += ChunkTable::kManyWords) {
    std::vector<ChunkWord> words(std::min(ChunkTable::kManyWords, carving_.chunks() - first));
    co_await table_.ReadWords(op, first, words);
    std::vector<ChunkTable::Found> found;
    for (size_t i = 0; i < words.size(); ++i) {
      if (!words[i].CanBeOwned() || (words[i].owner() != dead && !words[i].owner().is_none())) continue;
      found.push_back({static_cast<uint32_t>(first + i), words[i]});
    }
    const uint64_t some = co_await TakeOver(op, std::move(found), /*may_leak=*/true);
    taken += some;
  }
  auto adoption = std::find_if(adoptions_.begin(), adoptions_.end(),
                               [&](const Adoption& one) { return one.dead == dead; });
  if (adoption == adoptions_.end()) adoption = adoptions_.insert(adoptions_.end(), Adoption{.dead = dead});
  adoption->swept = adoption->swept && taken == 0;
  adoption->done = adoption->swept;
  co_return taken;
}

bool Allocator::MayReleaseSlot(Owner dead) const {
  if (Mutant(kSkipAdoption)) return true;
  return std::any_of(adoptions_.begin(), adoptions_.end(), [&](const Adoption& one) {
    return one.dead == dead && (one.done || Mutant(kReleaseSlotTooEarly));
  });
}

// INVARIANT durable/5: a client that claimed the chunk may have died before its word was durable. An extent
// that was taken is not handed out.
Task<Done> Allocator::MakeTakenDurable(Op& op, std::span<const ChunkTable::Found> found, const Batch& taken) {
  std::vector<ByteRange> words;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool mine = taken.Old(i) == found[i].word.word();
    if (mine && found[i].word.state() == ChunkState::kBlocks)
      words.push_back({carving_.WordAt(found[i].chunk).offset, sizeof(ChunkWord)});
  }
  if (words.empty() || Mutant(kTakenNotDurable)) co_return Done{};
  ++stats_.trips;
  co_await MakeDurable(op, membership_.node(), std::move(words));
  co_return Done{};
}

// If this client dies here, what it has taken is its own, and its adopter goes on from there. The bitmaps
// are left as they are: what they say is found by the next harvest.
Task<uint64_t> Allocator::TakeOver(Op& op, std::vector<ChunkTable::Found> found, bool may_leak) {
  std::erase_if(found, [this](const ChunkTable::Found& one) { return SkipIfOwned(one.chunk); });
  uint64_t taken = 0;
  for (size_t first = 0; first < found.size(); first += kAtomicsPerTrip - 1) {
    const auto some = std::span(found).subspan(first, std::min(kAtomicsPerTrip - 1, found.size() - first));
    std::vector<ClientSlot> registry(may_leak ? 0 : membership_.geometry().client_slots);
    Batch batch(op, Order::kInOrder);
    for (const ChunkTable::Found& one : some) {
      batch.Add(ForMaintenance(
          Cas(carving_.WordAt(one.chunk), one.word.word(), one.word.WithOwner(self()).word())));
    }
    // CAS, READ keep their order: this reads which clients are dead when the chunks have been taken.
    if (!registry.empty()) {
      batch.Add(ForMaintenance(Read(membership_.At(membership_.geometry().registry()),
                                    std::as_writable_bytes(std::span(registry)))));
    }
    InDoubt doubt(*this);
    ++stats_.trips;
    co_await batch;
    if (durable()) co_await MakeTakenDurable(op, some, batch);
    const bool leaks = may_leak || (IsAnybodyFenced(registry) && !Mutant(kTakeBlindly));
    for (size_t i = 0; i < some.size(); ++i) {
      const auto& [chunk, word] = some[i];
      const bool mine = batch.Old(i) == word.word();
      table_.Note(chunk, mine ? word.WithOwner(self()) : ChunkWord(batch.Old(i)));
      if (!mine) continue;
      if (word.state() == ChunkState::kBlocks) {
        AddChunk(chunk, {word.argument(), word.use()}, /*all_free=*/false);
      } else {
        NoteFirstOwned();
        extents_[chunk] = Extent{.chunks = word.argument()};
      }
      if (leaks) ++takeovers_;
      ++taken;
    }
    doubt.Resolve();
  }
  co_return taken;
}

// ---- chunks without an owner -------------------------------------------------------------------------

Task<Done> Allocator::ReclaimOwnerless(Op& op, WorthTaking worth_taking) {
  for (uint64_t first = 0; first < carving_.chunks(); first += ChunkTable::kManyWords) {
    std::vector<ChunkWord> words(std::min(ChunkTable::kManyWords, carving_.chunks() - first));
    co_await table_.ReadWords(op, first, words);
    std::vector<ChunkTable::Found> found;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i].state() != ChunkState::kBlocks || !words[i].owner().is_none()) continue;
      found.push_back({static_cast<uint32_t>(first + i), words[i]});
      if (found.size() < kAtomicsPerTrip - 1) continue;
      co_await ReclaimOwnerless(op, std::move(found), worth_taking);
      found.clear();
    }
    co_await ReclaimOwnerless(op, std::move(found), worth_taking);
  }
  co_return Done{};
}

// What is read before a chunk is owned may have changed by then; only what is harvested counts.
Task<Done> Allocator::ReclaimOwnerless(Op& op, std::vector<ChunkTable::Found> found,
                                       const WorthTaking& worth_taking) {
  if (found.empty()) co_return Done{};
  std::vector<std::vector<uint64_t>> bitmaps;
  for (const ChunkTable::Found& one : found)
    bitmaps.emplace_back(classes().shape(one.word.argument()).bitmap_words());
  Batch batch(op, Order::kTogether);
  for (size_t i = 0; i < found.size(); ++i) {
    batch.Add(ForMaintenance(
        Read(carving_.ChunkAt(found[i].chunk), std::as_writable_bytes(std::span(bitmaps[i])))));
  }
  ++stats_.trips;
  co_await batch;
  std::vector<ChunkTable::Found> promising;
  for (size_t i = 0; i < found.size(); ++i) {
    uint32_t bits = 0;
    for (uint64_t word : bitmaps[i]) bits += static_cast<uint32_t>(std::popcount(word));
    const bool is_empty = bits >= classes().shape(found[i].word.argument()).blocks;
    if (is_empty || worth_taking(found[i].word, bits)) promising.push_back(found[i]);
  }
  co_await TakeOver(op, promising, /*may_leak=*/false);
  std::vector<Chunk*> chunks;
  for (const ChunkTable::Found& one : promising) {
    Chunk* chunk = FindChunk(one.chunk);
    if (chunk != nullptr) chunks.push_back(chunk);
  }
  // One that is not empty after all stays: an operation may have taken a block of it meanwhile, and as long
  // as that is not published, only its owner knows (sweep.cc).
  co_await Harvest(op, chunks, /*thorough=*/true);
  co_await Release(op, /*keep_spares=*/false);
  co_return Done{};
}

// ---- leaving -----------------------------------------------------------------------------------------

Task<Done> Allocator::LeaveAll(Op& op) {
  if (std::optional<Error> broken = CheckWhole()) co_return std::move(*broken);
  if (!retired_.empty()) co_return NotYet("not all freed blocks have been given back; reclaim them first");
  std::vector<Chunk*> own = OwnChunks();
  co_await Harvest(op, own, /*thorough=*/true);
  co_await Release(op, /*keep_spares=*/false);
  WorthTaking none = [](ChunkWord, uint32_t) { return false; };
  co_await ReclaimOwnerless(op, std::move(none));
  std::vector<uint32_t> rest;
  for (const Chunk* chunk : OwnChunks()) rest.push_back(chunk->index);
  co_await LeaveEach(op, std::move(rest));
  while (!extents_.empty()) co_await LeaveExtents(op);
  co_return Done{};
}

Task<Done> Allocator::LeaveSome(Op& op, size_t most_chunks) {
  if (std::optional<Error> broken = CheckWhole()) co_return std::move(*broken);
  if (!retired_.empty()) co_return NotYet("not all freed blocks have been given back; reclaim them first");
  std::vector<Chunk*> some;
  std::vector<uint32_t> rest;
  for (const auto& [index, chunk] : chunks_) {
    if (some.size() == most_chunks) break;
    some.push_back(chunk.get());
    rest.push_back(index);
  }
  co_await Harvest(op, some, /*thorough=*/true);
  co_await Release(op, /*keep_spares=*/false);
  co_await LeaveEach(op, std::move(rest));
  if (!extents_.empty()) co_await LeaveExtents(op);
  co_return Done{};
}

// Some of them may be gone.
Task<Done> Allocator::LeaveEach(Op& op, std::vector<uint32_t> chunks) {
  for (size_t first = 0; first < chunks.size(); first += kAtomicsPerTrip) {
    const auto begin = chunks.begin() + static_cast<ptrdiff_t>(first);
    const size_t count = std::min(kAtomicsPerTrip, chunks.size() - first);
    const bool left =
        co_await LeaveChunks(op, std::vector<uint32_t>(begin, begin + static_cast<ptrdiff_t>(count)));
    if (!left) co_return NotYet("a client has died; sweep first");
  }
  co_return Done{};
}

Task<bool> Allocator::GiveUpFree(Op& op, std::span<Chunk* const> chunks) {
  Batch batch(op, Order::kTogether);
  for (Chunk* chunk : chunks) {
    for (uint32_t word = 0; word < chunk->free.words().size() && batch.size() < kAtomicsPerTrip; ++word) {
      uint64_t bits = chunk->free.words()[word];
      if (bits == 0) continue;
      batch.Add(ForMaintenance(Faa(carving_.BitmapWordAt(chunk->index, word), bits)));
      for (; bits != 0; bits &= bits - 1) {
        StateOf(chunk->kind)
            .shelf.Withdraw(*chunk, word * 64 + static_cast<uint32_t>(std::countr_zero(bits)));
      }
    }
  }
  if (batch.size() == 0) co_return false;
  ++stats_.trips;
  co_await batch;
  co_return true;
}

// The blocks that are free here are given back, as by every holder of a block (alloc/1).
Task<bool> Allocator::LeaveChunks(Op& op, std::vector<uint32_t> chunks) {
  std::vector<Chunk*> own;
  for (const uint32_t index : chunks) {
    Chunk* const chunk = FindChunk(index);
    if (chunk == nullptr) continue;
    if (chunk->harvesting) co_return false;
    own.push_back(chunk);
  }
  if (own.empty()) co_return true;
  for (Chunk* chunk : own) chunk->harvesting = true;  // keeps it from being released under our feet
  InDoubt doubt(*this);
  bool more = true;
  while (more) more = co_await GiveUpFree(op, own);
  for (Chunk* chunk : own) chunk->harvesting = false;
  // INVARIANT alloc/7: nothing is awaited between this question and the CAS.
  if (SweepDue() && !Mutant(kLeaveUnswept)) {
    doubt.Resolve();
    co_return false;
  }
  Batch batch(op, Order::kTogether);
  std::vector<ChunkTable::Found> left;
  for (Chunk* chunk : own) {
    const ChunkWord word(ChunkState::kBlocks, chunk->kind.size_class, self(), chunk->kind.use);
    left.push_back({chunk->index, word});
    batch.Add(
        ForMaintenance(Cas(carving_.WordAt(chunk->index), word.word(), word.WithOwner(Owner()).word())));
    ForgetChunk(*chunk);
  }
  ++stats_.trips;
  co_await batch;
  for (size_t i = 0; i < left.size(); ++i) {
    const auto& [index, word] = left[i];
    if (batch.Old(i) != word.word()) {
      co_return Error(ErrorCode::kCorrupt,
                      fmt::format("chunk {} of node {} was taken from its owner, which is alive", index,
                                  Index(membership_.node())));
    }
    table_.Note(index, word.WithOwner(Owner()));
  }
  doubt.Resolve();
  co_return true;
}

Task<Done> Allocator::LeaveExtents(Op& op) {
  if (SweepDue() && !Mutant(kLeaveUnswept)) co_return NotYet("a client has died; sweep first");
  InDoubt doubt(*this);
  Batch batch(op, Order::kTogether);
  for (auto extent = extents_.begin(); extent != extents_.end() && batch.size() < kAtomicsPerTrip;) {
    const ChunkWord word(ChunkState::kExtent, extent->second.chunks, self());
    // One that is not ours any more has been freed by another client.
    batch.Add(
        ForMaintenance(Cas(carving_.WordAt(extent->first), word.word(), word.WithOwner(Owner()).word())));
    extent = extents_.erase(extent);
  }
  ++stats_.trips;
  co_await batch;
  doubt.Resolve();
  co_return Done{};
}

}  // namespace farside::pool
