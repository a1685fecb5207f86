// Allocation and reclamation on one node of a pool, for one client.
//
// Memory is cut into chunks, which clients own by name (ChunkWord). A client hands out blocks of its own
// chunks only, and knows alone which of them are free; so allocating costs no trip but when a chunk is
// needed. A client that frees a block of another client's chunk adds its bit to the bitmap at the head of
// that chunk, and the owner harvests it. Blocks larger than the largest size class are extents: runs of whole
// chunks.
//
// Invariants
//   alloc/1  Of a chunk of blocks, every block is exactly one of: free at its owner, handed out, or given
//            back (its bit is set). Only the holder of a block sets the bit, once; only the owner clears
//            it.
//   alloc/2  A bit is cleared before its block is handed out again, so adding it never carries.
//   alloc/3  A block that was reachable is given back only when its stamp, an epoch read after it was
//            unlinked, is less than what every live client has published (pool/1).
//   alloc/4  A chunk changes its state or class only when all of its blocks are free at its owner. So the
//            holder of a block knows the shape of its chunk without reading it.
//   alloc/5  The first chunk of an extent is claimed first and freed last, and it alone names the owner. So
//            a word {rest, d} belongs to the extent that begins d chunks before it, at any time.
//   alloc/6  What a client knows alone can be lost at any time: a block that was free, or waited to be given
//            back, is then handed out and reached by no table, and a sweep finds it (sweep.h).
//   alloc/7  A chunk loses its owner only while its owner knows of no death whose leaks it may hold, or while
//            a client is fenced whose slot is not released before the chunk is swept (join.cc). A client that
//            takes a chunk without owner looks for dead clients afterwards. So no leak is left in a chunk
//            that no client sweeps.
//
// What of it is durable, in a durable pool: region/recover.h (durable/5, durable/10).
//
// Evacuation: when no chunk is free, sparse chunks of records are emptied, by tables that move their records
// (index/evacuation.h).
//   evac/2   Only own chunks are evacuated. One that is hands out nothing meanwhile, and copies are made in
//            blocks that are free in other own chunks (TryAllocate).
//   evac/3   It is released as every other chunk: when all of its blocks are free at its owner, after grace.
//   evac/5   Structure comes from chunks of its own (BlockUse), which are not evacuated; neither are extents.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "pool/durability.h"
#include "pool/members/membership.h"
#include "pool/memory/carving.h"
#include "pool/memory/chunk.h"
#include "pool/memory/chunk_table.h"
#include "pool/memory/retired.h"
#include "pool/memory/shelf.h"
#include "pool/memory/victims.h"

namespace farside::pool {

struct AllocatorStats {
  uint64_t chunks_owned = 0;      // of blocks
  uint64_t extents_owned = 0;     // freed ones count until their chunks are claimed again
  uint64_t bytes_owned = 0;       // whole chunks and extents
  uint64_t bytes_handed_out = 0;  // in units of size classes; what others freed counts until it is harvested
  uint64_t bytes_free_local = 0;  // blocks free in own chunks
  uint64_t retired_pending = 0;   // blocks waiting for grace, or to be given back
  uint64_t trips = 0;             // of this allocator, all told
  uint64_t chunks_claimed = 0;
  uint64_t chunks_released = 0;
  uint64_t blocks_given_back = 0;  // to other clients' chunks
  uint64_t blocks_harvested = 0;   // from own chunks
  uint64_t chunks_evacuated = 0;   // chosen to be emptied
  uint64_t blocks_swept = 0;       // leaked by dead clients, found by a sweep
  uint64_t nonsense = 0;           // addresses and words that no correct client wrote; left alone
};

class Sweep;

class Allocator {
 public:
  // Lets other clients move past what this one has retired, as far as they can: syncs, reads their pulses,
  // stamps and reclaims.
  using AskForGrace = std::function<Task<Done>(fabric::Op& op)>;

  // `membership` must have joined before anything else is called.
  explicit Allocator(Membership& membership);
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Asked for when memory is full; without it, a full node is full until the next Reclaim.
  void set_ask_for_grace(AskForGrace ask) { ask_for_grace_ = std::move(ask); }

  // ---- allocating
  // A block of at least `bytes`, 64-byte aligned; one of 64, 128, 256, ... 4096 bytes is aligned to its
  // size, and so lies within a page. Its bytes are whatever they were. No trip: nothing if no owned chunk
  // has one free.
  std::optional<fabric::FarAddr> TryAllocate(uint64_t bytes, BlockUse use = BlockUse::kStructure);
  // Claims memory if need be. kOutOfMemory if there is none.
  Task<fabric::FarAddr> Allocate(fabric::Op& op, uint64_t bytes, BlockUse use = BlockUse::kStructure);
  // Others may have given something back: the next search for room looks everywhere, however recent the last
  // one was.
  void ExpectRoom() { no_room_since_.reset(); }
  // Frees a block that no other client ever saw. `bytes` as it was allocated; so everywhere below.
  void FreeUnpublished(fabric::FarAddr block, uint64_t bytes);
  // A block of this client was on its way into a table when a memory node was lost, and may or may not be
  // reachable now: a sweep is due, which tells, and this client does not leave before one (alloc/6).
  void NoteInDoubt() { ++takeovers_; }

  // ---- reclaiming
  // Frees, when it is safe, a block that was reachable and that this client has unlinked. No trip. `birth` is
  // the epoch known when the operation that unlinked it began.
  void Retire(fabric::FarAddr block, uint64_t bytes, uint64_t birth);
  // Frees, by the next Reclaim, a block that no client can look at any more: its table was dropped, and grace
  // is over. `birth` as above.
  void FreeUnused(fabric::FarAddr block, uint64_t bytes, uint64_t birth);
  // How many blocks were ever retired. Taken before a Sync is posted, it says which of them were unlinked
  // before the epoch was read.
  uint64_t retired_so_far() const { return retired_.end(); }
  // The epoch that the Sync has read; `retired_before` is retired_so_far() as it was before it was posted.
  void Stamp(uint64_t retired_before, uint64_t epoch) { retired_.Stamp(retired_before, epoch); }
  // Gives back what was stamped with less than `safe_epoch` (RegistryView), harvests, and releases empty
  // chunks.
  Task<Done> Reclaim(fabric::Op& op, uint64_t safe_epoch);
  // Harvests all that others have given back, and releases every chunk that is empty, for another client that
  // wants room.
  Task<Done> GiveUpSpares(fabric::Op& op);
  // The smallest birth of what is not given back yet; the largest number if all is. The pulse's `settled`
  // is at most this.
  uint64_t OldestUnsettled() const;

  // ---- evacuating (evacuate.cc)
  // Whether an Allocate has found no memory. ChunksMissing forgets it, too.
  bool FoundNoMemory() const { return starved_.has_value(); }
  void ForgetNoMemory() { starved_.reset(); }
  // How many free chunks in a row the last Allocate that found no memory would not find now, either; 0: it
  // would find memory, or there was none. Forgets that Allocate.
  Task<uint32_t> ChunksMissing(fabric::Op& op);
  // A chunk to be emptied, and its blocks that are in use, as far as its owner knows.
  struct Victim {
    uint32_t chunk = 0;
    uint64_t block_bytes = 0;
    std::vector<fabric::FarAddr> blocks = {};
  };
  // The sparsest own chunks of records whose blocks fit into other own chunks (victims.h). Each hands out
  // nothing until it is empty, or EndEvacuation is called.
  Task<std::vector<Victim>> BeginEvacuation(fabric::Op& op, EvacuationLimits limits);
  // The chunk keeps its mark only if nothing but grace is missing: all that is in use of it waits to be given
  // back by this client.
  void EndEvacuation(uint32_t chunk);

  // ---- leaving
  // Gives up all chunks and extents. Runs as an operation whose epoch is held. Everything retired must have
  // been given back, no other operation be in flight, and no sweep be due: kContended says what is missing.
  // If it fails otherwise, do not leave the registry: others repair what is left after the lease.
  Task<Done> LeaveAll(fabric::Op& op);
  // The same, of so many chunks and a trip of extents: call it until OwnsNothing(). It leaves chunks without
  // owner that are empty to clients that look for room.
  Task<Done> LeaveSome(fabric::Op& op, size_t most_chunks);

  // ---- repairing after a death
  // Takes over what a fenced client owned, and what has no owner. Returns how many chunks and extents it
  // took. The rule for a client that sees a fenced one: Adopt, Sweep, and again until Adopt takes nothing;
  // only then ReleaseSlot.
  Task<uint64_t> Adopt(fabric::Op& op, Owner dead);
  // True when that rule has been kept: an Adopt took nothing, and a sweep ended between an earlier one and
  // it.
  bool MayReleaseSlot(Owner dead) const;
  // True if a dead client may have leaked blocks of chunks that this one owns, or keeps its slot because no
  // client has swept: run a Sweep (sweep.h).
  bool SweepDue() const;

  bool OwnsNothing() const { return chunks_.empty() && extents_.empty(); }
  AllocatorStats stats() const;
  const Carving& carving() const { return carving_; }

 private:
  friend class Sweep;

  // What it knows about blocks of one kind.
  struct ClassState {
    // The chunks of the shelf in turn; there must be one. From the end on: new ones are added there, and the
    // other way would meet the newest again and again while the shelf grows.
    Chunk* NextToHarvest();
    // The next few of them, as many as a trip can look at.
    std::vector<Chunk*> SomeToHarvest();

    Shelf shelf;
    size_t refilling = 0;        // coroutines that are at it
    uint64_t used_at = 0;        // reclaims_ when a block was last taken
    size_t next_harvest = 0;     // those before this position on the shelf are still to come
    uint32_t harvest_pause = 0;  // refills to skip, because harvests found little
    uint32_t harvest_misses = 0;
    bool harvest_wanted = false;  // by a refill, from the next Reclaim
  };
  struct Extent {
    uint32_t chunks = 0;
    bool suspect = false;  // as Chunk::suspects
  };
  // How far this client is with adopting what a dead one held.
  struct Adoption {
    Owner dead;
    bool swept = false;  // since something was taken, or else since it was first looked for
    bool done = false;   // there was nothing left after that
  };
  // Stands where far memory may differ from what is known here. If the coroutine is destroyed meanwhile, or
  // ends with an error of the fabric, only the repair after a death can tell what is whose.
  class InDoubt;

  Owner self() const { return membership_.self(); }
  const SizeClasses& classes() const { return carving_.classes(); }
  ClassState& StateOf(BlockKind kind) {
    return states_[static_cast<uint32_t>(kind.use) * classes().count() + kind.size_class];
  }

  // ---- blocks of own chunks
  std::optional<fabric::FarAddr> Take(BlockKind kind);
  Chunk* FindChunk(uint32_t index);
  std::vector<Chunk*> OwnChunks() const;  // by index
  void AddChunk(uint32_t index, BlockKind kind, bool all_free);
  void ForgetChunk(Chunk& chunk);  // destroys it
  // True if this client owns the chunk, although a search found it to be free or without owner: another
  // operation has claimed it since, or its word is damaged. The search does not offer it again soon.
  bool SkipIfOwned(uint32_t index);
  void FreeBlock(Chunk& chunk, uint32_t block);
  void NotSuspect(const BlockPosition& position);
  void NoteFirstOwned();

  // ---- getting more (allocator.cc)
  Task<bool> Refill(fabric::Op& op, BlockKind kind);
  Task<Done> HarvestKind(fabric::Op& op, BlockKind kind);
  Task<bool> ClaimChunk(fabric::Op& op, BlockKind kind);
  Task<bool> ClaimFree(fabric::Op& op, uint32_t chunk, BlockKind kind);
  Task<Done> ClaimOwnerless(fabric::Op& op, ChunkTable::Found found);
  // For a full node: harvests everything, releases what is empty, and takes what has no owner and is empty
  // or has blocks of the kind that is wanted.
  Task<Done> MakeRoom(fabric::Op& op, BlockKind wanted);
  // True if there may be more room afterwards.
  Task<bool> WaitForGrace(fabric::Op& op);
  // Whether words of chunks must be durable before their blocks are handed out (durable/5).
  bool durable() const { return membership_.geometry().durable; }
  // Those of so many chunks from this one on.
  Task<Done> MakeWordsDurable(fabric::Op& op, uint64_t first, uint64_t chunks);
  std::optional<Error> CheckWhole() const;
  // Remembers what was asked for, for ChunksMissing.
  Error OutOfMemory(uint64_t bytes, BlockUse use);

  // ---- extents (extent.cc)
  Task<fabric::FarAddr> AllocateExtent(fabric::Op& op, uint64_t bytes, BlockUse use);
  Task<bool> ClaimExtent(fabric::Op& op, uint32_t head, uint32_t chunks);
  // Frees those of the chunks head + 1 ... head + chunks - 1 that belong to the extent.
  Task<Done> FreeRests(fabric::Op& op, uint32_t head, uint32_t chunks);
  // False if its owner changed too often meanwhile; try again later.
  Task<bool> FreeExtent(fabric::Op& op, uint32_t head, uint32_t chunks);

  // ---- giving back and harvesting (reclaim.cc)
  struct GiveBackBit {
    uint64_t at = 0;  // offset of the word of the bitmap
    uint64_t bit = 0;
    uint64_t number = 0;  // in retired_
  };
  Task<Done> GiveBack(fabric::Op& op, uint64_t safe_epoch);
  Task<Done> GiveBackToOthers(fabric::Op& op);
  Task<Done> HarvestWanted(fabric::Op& op);
  Task<uint64_t> HarvestSome(fabric::Op& op);
  // Frees the blocks that others gave back, in all of the chunks that are worth the trips, or if `thorough`,
  // in all. Skips chunks that another operation is harvesting. Returns the number of blocks. What is in
  // `chunks` afterwards means nothing.
  Task<uint64_t> Harvest(fabric::Op& op, std::span<Chunk*> chunks, bool thorough);
  // Bits of a word of the bitmap of an own chunk.
  struct GivenBack {
    Chunk* chunk = nullptr;
    uint32_t word = 0;
    uint64_t bits = 0;
  };
  Task<Done> FindGivenBack(fabric::Op& op, std::span<Chunk* const> chunks, bool thorough,
                           std::vector<GivenBack>& found);
  static bool IsWorthHarvesting(const Chunk& chunk, std::span<const uint64_t> bitmap);
  Task<uint64_t> ClearGivenBack(fabric::Op& op, std::span<const GivenBack> given_back);
  // Returns the number of chunks.
  Task<uint64_t> Release(fabric::Op& op, bool keep_spares);
  std::vector<ChunkTable::Found> TakeEmptyChunks(bool keep_spares);

  // ---- choosing chunks to evacuate (evacuate.cc)
  // The blocks of own chunks that this client has retired and not given back yet, by chunk.
  std::unordered_map<uint32_t, BlockSet> RetiredBlocks() const;
  std::vector<SparseChunk> ChunksOfRecords(const std::unordered_map<uint32_t, BlockSet>& retired) const;
  void FreeRetired(Chunk& chunk);
  Victim BeginEvacuationOf(Chunk& chunk, const BlockSet* retired);
  // For a class whose only free blocks are in chunks that are being evacuated: takes off their marks.
  bool StopEvacuating(BlockKind kind);

  // ---- taking over and leaving (adopt.cc)
  // Takes chunks and extents whose words are still as found; none of their blocks is free yet. Returns how
  // many. If not `may_leak`, it looks whether a client is dead, and so may have leaked blocks of them.
  Task<uint64_t> TakeOver(fabric::Op& op, std::vector<ChunkTable::Found> found, bool may_leak);
  Task<Done> MakeTakenDurable(fabric::Op& op, std::span<const ChunkTable::Found> found,
                              const fabric::Batch& taken);
  // Frees chunks without owner all of whose blocks were given back; takes those that are `worth_taking`,
  // given their word and how many of their blocks were given back.
  using WorthTaking = std::function<bool(ChunkWord word, uint32_t given_back)>;
  Task<Done> ReclaimOwnerless(fabric::Op& op, WorthTaking worth_taking);
  Task<Done> ReclaimOwnerless(fabric::Op& op, std::vector<ChunkTable::Found> found,
                              const WorthTaking& worth_taking);
  // As many as the atomics of a trip. False if they must not lose their owner now (alloc/7).
  Task<bool> LeaveChunks(fabric::Op& op, std::vector<uint32_t> chunks);
  Task<Done> LeaveEach(fabric::Op& op, std::vector<uint32_t> chunks);
  // The bits of blocks that are free here, as many as one trip adds. False: there were none.
  Task<bool> GiveUpFree(fabric::Op& op, std::span<Chunk* const> chunks);
  // By one trip.
  Task<Done> LeaveExtents(fabric::Op& op);
  bool MayHoldLeaks() const;

  Membership& membership_;
  const Carving carving_;
  ChunkTable table_;
  AskForGrace ask_for_grace_;

  std::vector<ClassState> states_;                               // by use, then by size class
  std::unordered_map<uint32_t, std::unique_ptr<Chunk>> chunks_;  // owned, by index
  std::map<uint32_t, Extent> extents_;  // owned, by first chunk; another client may have freed one meanwhile
  RetiredQueue retired_;
  std::vector<GiveBackBit> bits_;      // gathered by GiveBack
  std::vector<uint64_t> bitmaps_;      // what FindGivenBack has read, for its memory
  const std::vector<std::byte> zero_;  // a bitmap

  bool settling_ = false;
  bool sweeping_ = false;
  bool lost_ = false;  // what is known here is not all; see InDoubt
  uint64_t reclaims_ = 0;
  uint32_t next_harvest_state_ = 0;
  std::optional<Nanos> no_room_since_;  // the last search for room found none
  struct Starved {
    uint64_t bytes = 0;
    BlockUse use = BlockUse::kStructure;
  };
  std::optional<Starved> starved_;  // by the last Allocate that found no memory

  // alloc/7: what sweeps are due.
  uint64_t clean_deaths_ = 0;     // control().deaths for which all that is owned is clean
  uint64_t takeovers_ = 0;        // chunks and extents taken that may hold leaks, and blocks in doubt
  uint64_t clean_takeovers_ = 0;  // those of them that have been swept

  std::vector<Adoption> adoptions_;

  AllocatorStats stats_;
};

}  // namespace farside::pool
