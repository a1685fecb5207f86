// Allocation and reclamation on one node of a pool, for one client.
//
// Memory is cut into chunks, which clients own by name (ChunkWord). A client hands out blocks of its own chunks only,
// and knows alone which of them are free; so allocating costs no trip but when a chunk is needed. Whoever
// frees a block of somebody else's chunk adds its bit to the bitmap at the head of that chunk, and
// the owner harvests it. Blocks larger than the largest size class are extents: runs of whole chunks.
//
// Invariants
//   alloc/1  Of a chunk of blocks, every block is exactly one of: free at its owner, handed out, or given back (its
//            bit is set). Only the holder of a block sets the bit, once; only the owner clears it.
//   alloc/2  A bit is cleared before its block is handed out again, so adding it never carries.
//   alloc/3  A block that was reachable is given back only when its stamp, an epoch read after it was unlinked, is
//            less than what every live client has published (pool/1).
//   alloc/4  A chunk changes its state or class only when all of its blocks are free at its owner. So whoever
//            holds a block knows the shape of its chunk without reading it.
//   alloc/5  An extent is freed by the one client that unlinked it, its first chunk last. While the first chunk
//            names it, a word {rest, d} at distance d is part of it, whoever its owner is.
//   alloc/6  What the local memory of a client knows can be lost at any time: free blocks that nobody knows of are
//            handed-out blocks that nobody reaches, and a sweep finds them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "fabric/address.h"
#include "fabric/op.h"
#include "farside/task.h"
#include "pool/membership.h"

namespace farside::pool {

struct AllocatorStats {
  uint64_t chunks_owned = 0;        // of blocks
  uint64_t extents_owned = 0;
  uint64_t bytes_owned = 0;         // whole chunks and extents
  uint64_t bytes_handed_out = 0;    // in units of size classes; what others freed counts until it is harvested
  uint64_t bytes_free_local = 0;    // blocks free in own chunks
  uint64_t retired_pending = 0;     // blocks waiting for grace, or to be given back
  uint64_t trips = 0;               // of this allocator, all told
  uint64_t chunks_claimed = 0;
  uint64_t chunks_released = 0;
  uint64_t blocks_given_back = 0;   // to other clients' chunks
  uint64_t blocks_harvested = 0;    // from own chunks
  uint64_t blocks_swept = 0;        // leaked by the dead, found by a sweep
  uint64_t nonsense = 0;            // addresses and words that no correct client wrote; left alone
};

class Allocator {
 public:
  // Lets others move past what this client has retired, as far as they can: sync, look around, stamp, settle.
  using AskForGrace = std::function<Task<Done>(fabric::Op& op)>;

  // `membership` must have joined before anything else is called.
  explicit Allocator(Membership& membership);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // Asked for when memory is full; without it, a full node is full until the next Settle.
  void set_ask_for_grace(AskForGrace ask) { ask_for_grace_ = std::move(ask); }

  // ---- allocating
  // A block of at least `bytes`, 64-byte aligned; one of 64, 128, ... 4096 bytes is aligned to its size, and so
  // lies within a page. Its bytes are whatever they were. No trip: nothing if no owned chunk has one free.
  std::optional<fabric::FarAddr> TryAllocate(uint64_t bytes);
  // Claims memory if need be. kOutOfMemory if there is none.
  Task<fabric::FarAddr> Allocate(fabric::Op& op, uint64_t bytes);
  // Frees a block that nobody else ever saw. `bytes` as it was allocated; so everywhere below.
  void FreeUnpublished(fabric::FarAddr block, uint64_t bytes);

  // ---- reclaiming
  // Frees, when it is safe, a block that was reachable and that this client has unlinked. No trip. `birth` is
  // the epoch known when the operation that unlinked it began.
  void Retire(fabric::FarAddr block, uint64_t bytes, uint64_t birth);
  // How many blocks were ever retired. Taken before a Sync is posted, it says which of them were unlinked before
  // the epoch was read.
  uint64_t retired_so_far() const;
  // The epoch that the Sync has read; `retired_before` is retired_so_far() as it was before.
  void Stamp(uint64_t retired_before, uint64_t epoch);
  // Gives back what was stamped with less than `safe_epoch` (RegistryView), harvests, and releases empty chunks.
  Task<Done> Settle(fabric::Op& op, uint64_t safe_epoch);
  // The smallest birth of what is not given back yet; the largest number if all is. The pulse's `settled` is at
  // most this.
  uint64_t OldestUnsettled() const;

  // ---- leaving
  // Gives up all chunks and extents. Everything retired must have been given back, no operation be in flight,
  // and no sweep be due.
  Task<Done> LeaveAll(fabric::Op& op);

  // ---- repairing after a death
  // Takes over what a fenced client owned, and what has no owner. Returns how many chunks it took. The rule for whoever
  // sees a fenced client: Adopt, Sweep, and again until Adopt takes nothing; only then Bury.
  Task<uint64_t> Adopt(fabric::Op& op, Owner dead);
  // True if a dead client may have leaked blocks of chunks that this one owns: run a Sweep (sweep.h).
  bool SweepDue() const;

  AllocatorStats stats() const;

 private:
  AskForGrace ask_for_grace_;
};

}  // namespace farside::pool
