// The one copy routine of all fabrics in which a CPU moves the bytes: a region, and beside it a sequence
// per stripe of lines that makes READs and WRITEs of a line whole.
//
//   region     | line 0 | line 1 | ... | line 4095 | line 4096 | ...
//   sequences  |   s0   |   s1   | ... |   s4095   |    s0     | ...
//
//   a sequence   63..16 changes   15..0 holder (0: free)
//
// A writer takes the sequence, which is to put its own number into it, stores the words, and frees it, one
// change higher. A reader notes the sequences of all its lines, copies, and looks again; if one was held or
// has moved, the copy is thrown away. After a few failures the reader takes the sequences itself, so that
// writers cannot keep it out for ever.
//
// Invariants:
//
//   memory/1  Every access to the region is an atomic access to an aligned 8-byte word. Bytes beside a
//             ragged WRITE are put back by compare-and-swap, so that a WRITE changes exactly its bytes.
//   memory/2  A word that is reachable changes only while the sequence of its line is held. `Unreachable`
//             WRITEs alone skip it: no other client looks at their bytes yet.
//   memory/3  A sequence never falls below a value that it had when it was free, and has risen when it is
//             free again after a word of its lines may have changed.
//   memory/4  A thread that holds one sequence waits for another only in ascending order of stripes.
//   memory/5  A client that may die alone, holds the sequence of a line and is about to change more than one
//             word of it, has a staging that holds all of the change and names that very state of the
//             sequence.
//
// Order, without fences, which ThreadSanitizer does not understand:
//
// * No torn copy. Words are stored with release and loaded with acquire. If a reader loads a word that some
//   writer stored, then that the writer took the sequence happens before the reader's second look, which
//   therefore does not find the value it noted (memory/3). The reverse, an old word after a new sequence, is
//   excluded by the writer's release of the free sequence and the reader's acquire of it. (Boehm, "Can
//   seqlocks get along with programming language memory models?", MSPC 2012, needs a fence because its words
//   are relaxed. On x86-64 all of them compile to plain moves.)
// * WRITE, then READ; and completion. Taking a lock and the first look of a reader are sequentially
//   consistent. Let A write x and then read y, and B write y and then read x. In the single order of those
//   operations, either B's first look at x follows A's lock, or A's first look at y follows B's. The later of
//   the two finds at least a held sequence, and waits for the new words. So a WRITE counts for every client
//   from the moment at which its lines were locked, though its words may still be on their way out of the
//   core: the lock is the full fence that the contract asks for between a WRITE and a later READ and before
//   completion. The same argument forbids two readers to see two WRITEs in opposite orders.
//
// Death. Threads of one process live and die together. Where clients are processes, one may be killed between
// any two instructions, and the sequences it held would stay held for ever. So each of them has a number of
// its own, and the daemon, which knows that it is gone, calls Recover with that number, once, before the
// number is given to another client:
//
//   a WRITE of more than one word dies            what Recover finds, and does
//   1  stage the bytes, their offset and size     it holds nothing: nothing
//   2  stage the free value of the sequence       it holds nothing: nothing
//   3  take the sequence at that value            held at the staged value: stores the staged bytes, frees it
//   4  store the words                            the same; some words are stored a second time
//   5  free the sequence, one change higher       it holds nothing: nothing
//
// * The staged value ties the staging to one taking of one sequence: every later one finds a higher value
//   (memory/3), so a staging that is out of date is never stored. One that was given up (see Watch) names no
//   value at all, and Recover leaves none behind: a successor could take the sequence at the value that a
//   dead client had staged.
// * To store a word twice does no harm: no other client changes a byte of the WRITE while the sequence is
//   held (memory/2).
// * What holds a sequence without a staging has nothing to complete: an atomic, or a WRITE inside one word,
//   has stored its word or has not; a reader stores nothing. Recover frees the sequence, one change higher to
//   be sure.
// * Others wait meanwhile, as for any holder. Only Recover frees what a dead holder held, so it is never
//   freed twice.
// * If the daemon is gone too, waiting would be for ever. Clients that may be left like that bring a Watch.
// * A number that no client has holds nothing, and in the name of the node only its own threads hold
//   something (own_holds.h). A sequence that says else was left by a process that changes the table although
//   its client is gone, or by a stray store; the daemon frees it (FreeStrays).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "fabric/address.h"
#include "fabric/service.h"
#include "fabric/verb.h"

namespace farside::fabric::memory {

using Sequence = std::atomic<uint64_t>;
static_assert(Sequence::is_always_lock_free, "sequences may be shared between processes");

// The sequences of a region. Plain memory without pointers, all zero at first, so that it may also stand in
// memory that processes share. Neighbouring lines have neighbouring sequences: a READ of 512 bytes looks at
// one or two cache lines of them.
struct alignas(kLineBytes) StripeTable {
  static constexpr size_t kStripes = 4096;
  std::array<Sequence, kStripes> sequences{};
};
static_assert(sizeof(StripeTable) == StripeTable::kStripes * 8);

// A sequence's parts.
inline constexpr uint64_t kHolderMask = 0xffff;
inline constexpr uint64_t kOneChange = kHolderMask + 1;
constexpr bool IsFree(uint64_t sequence) { return (sequence & kHolderMask) == 0; }

// A holder of sequences. Numbers matter only to Recover: holders that cannot die alone share one.
using Holder = uint16_t;
inline constexpr Holder kTheNode = 0xffff;

// What a client that may die alone is about to store in a line. Written by that client only; plain memory
// without pointers, all zero at first, so that it may stand in memory that processes share.
struct alignas(kLineBytes) Staging {
  static constexpr uint64_t kNothing = kHolderMask;  // no value of a free sequence

  std::atomic<uint64_t> sequence;  // as it is taken; see memory/5
  std::atomic<uint64_t> offset;    // in the region
  std::atomic<uint64_t> size;      // within one line
  std::array<uint64_t, 5> unused;
  std::array<std::atomic<uint64_t>, kLineBytes / 8> bytes;
};
static_assert(sizeof(Staging) == 2 * kLineBytes);

// Asked from time to time by a client that waits for a line, and by the node itself.
class Watch {
 public:
  virtual ~Watch() = default;
  // False: the line of this sequence will not be finished, or not in time, and the waiting thread gives up.
  // `since` is for the watch to note when it was asked last; it is empty when a wait asks for the first time.
  virtual bool MayBeFinished(const Sequence& sequence, std::optional<Nanos>& since) = 0;
};

class OwnHold;
class OwnHolds;

// With a Holder number or an OwnHold, for one thread; otherwise for any number at once. Offsets and sizes are
// the caller's to check (CheckBounds). Allocates nothing.
class LineMemory final : public NodeMemory {
 public:
  // All must outlive this. The region is aligned to a line and a whole number of lines. Without a watch, no
  // holder may die alone.
  LineMemory(std::span<std::byte> region, StripeTable& stripes, Watch* watch = nullptr);
  // For one thread of a node whose stripes other processes share. All arguments must outlive this.
  LineMemory(std::span<std::byte> region, StripeTable& stripes, OwnHold& own_hold, Watch* watch);
  // For a holder that may die alone: with a number of its own. All arguments must outlive this.
  LineMemory(std::span<std::byte> region, StripeTable& stripes, Holder holder, Staging& staging,
             Watch& watch);

  // Executes a READ, a WRITE or an atomic, and leaves the answer in it. All of these return false if the
  // watch gave up: then what was to be changed may be changed in part, line by line, and what was read is
  // void.
  bool Execute(Verb& verb);

  // At most kWindowBytes: one snapshot. More: a snapshot per line and per about kWindowBytes.
  bool Read(uint64_t offset, std::span<std::byte> into) const;
  // Line by line; each appears at once.
  bool Write(uint64_t offset, std::span<const std::byte> from);
  // The bytes must not be reachable for any other client until a later step makes them so.
  void WriteUnreachable(uint64_t offset, std::span<const std::byte> from);
  // CAS, masked CAS or FAA: `old` is the whole word as it was before.
  bool Atomic(const Verb& verb, uint64_t& old);
  uint64_t Atomic(const Verb& verb) {
    uint64_t old = 0;
    Atomic(verb, old);
    return old;
  }

  // Completes the line of a holder that is gone for good and frees what it held. Returns how many sequences
  // that were. Believes nothing that stands in `staging`, and empties it for the next client with the number.
  size_t Recover(Holder holder, Staging& staging);
  // Frees what is held by numbers that are not in use, of which `in_use[number]` is false or missing, and by
  // kTheNode if it is not among the holds of its threads. Returns how many sequences that were. A number must
  // stay in use until it was recovered.
  size_t FreeStrays(const std::vector<bool>& in_use, const OwnHolds& own_holds);
  // Whether it holds a sequence now.
  bool Holds(Holder holder) const;

  // Asks for the cache lines that `verb` will touch, or the first of them if they are many.
  void Prefetch(const Verb& verb) const { Prefetch(verb.at.offset, verb.size, Mutates(verb.kind)); }
  void Prefetch(uint64_t offset, uint64_t size, bool mutates) const;

  // For the node's own CPU.
  uint64_t bytes() const override { return region_.size(); }
  uint64_t Load(uint64_t offset) const override;
  void Store(uint64_t offset, uint64_t word) override;

 private:
  // The lines that a READ looks at together.
  struct Window {
    uint64_t first_line;
    uint64_t lines;
  };
  static Window WindowOf(uint64_t offset, uint64_t size);

  Sequence& SequenceOf(uint64_t line) const { return stripes_.sequences[line % StripeTable::kStripes]; }
  uint64_t StripeOf(const Sequence& sequence) const;
  std::atomic_ref<uint64_t> Word(uint64_t offset) const;

  // Takes a sequence; `free` is its value before. `staging` gets that value first, if there is one.
  bool Take(Sequence& sequence, uint64_t& free, Staging* staging = nullptr) const;
  // Takes it if it still has this value.
  bool TryTake(Sequence& sequence, uint64_t free) const;
  // Frees what was taken at this value.
  void Free(Sequence& sequence, uint64_t free) const;
  void FreeUnchanged(Sequence& sequence, uint64_t free) const;

  bool ReadWindow(uint64_t offset, std::span<std::byte> into) const;
  bool TryReadWindow(const Window& window, uint64_t offset, std::span<std::byte> into) const;
  bool ReadWindowAgain(const Window& window, uint64_t offset, std::span<std::byte> into) const;
  bool ReadWindowHeld(const Window& window, uint64_t offset, std::span<std::byte> into) const;
  bool WriteInLine(uint64_t offset, std::span<const std::byte> from);
  void Stage(uint64_t offset, std::span<const std::byte> from);
  void Redo(uint64_t stripe, uint64_t free, const Staging& staging);

  void CopyOut(uint64_t offset, std::span<std::byte> into) const;
  void CopyIn(uint64_t offset, std::span<const std::byte> from);
  void MergeIn(uint64_t offset, std::span<const std::byte> from);

  const std::span<std::byte> region_;
  StripeTable& stripes_;
  const Holder holder_ = kTheNode;
  Staging* const staging_ = nullptr;
  OwnHold* const own_hold_ = nullptr;
  Watch* const watch_ = nullptr;
};

}  // namespace farside::fabric::memory
