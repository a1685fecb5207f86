// The one copy routine of all fabrics in which a CPU moves the bytes: a region, and beside it a sequence
// per stripe of lines that makes READs and WRITEs of a line whole.
//
//   region     | line 0 | line 1 | ... | line 4095 | line 4096 | ...
//   sequences  |   s0   |   s1   | ... |   s4095   |    s0     | ...      even: free; odd: being changed
//
// A writer makes the sequence odd, stores the words, and makes it even again, two higher. A reader notes the
// sequences of all its lines, copies, and looks again; if one was odd or has moved, the copy is thrown away.
// After a few failures the reader takes the locks itself, so that writers cannot keep it out for ever.
//
// Invariants:
//
//   memory/1  Every access to the region is an atomic access to an aligned 8-byte word. Bytes beside a
//             ragged WRITE are put back by compare-and-swap, so that a WRITE changes exactly its bytes.
//   memory/2  A word that is reachable changes only under the odd sequence of its line. `Unreachable`
//             WRITEs alone skip it: nobody else looks at their bytes yet.
//   memory/3  An even sequence never decreases, and moves whenever a word of its lines may have changed.
//   memory/4  A thread that holds one sequence waits for another only in ascending order of stripes.
//
// Order, without fences, which ThreadSanitizer does not understand:
//
// * No torn copy. Words are stored with release and loaded with acquire. If a reader loads a word that some
//   writer stored, then that writer's odd sequence happens before the reader's second look, which therefore
//   does not find the value it noted (memory/3). The reverse, an old word after a new sequence, is excluded
//   by the writer's release of the even sequence and the reader's acquire of it. (Boehm, "Can seqlocks get
//   along with programming language memory models?", MSPC 2012, needs a fence because its words are
//   relaxed. On x86-64 all of them compile to plain moves.)
// * WRITE, then READ; and completion. Taking a lock and the first look of a reader are sequentially
//   consistent. Let A write x and then read y, and B write y and then read x. In the single order of those
//   operations, either B's first look at x follows A's lock, or A's first look at y follows B's. Whoever is
//   later finds at least an odd sequence, and waits for the new words. So a WRITE counts for everyone from the
//   moment at which its lines were locked, though its words may still be on their way out of the core: the
//   lock is the full fence that the contract asks for between a WRITE and a later READ and before completion.
//   The same argument forbids two readers to see two WRITEs in opposite orders.
//
// A writer that dies between odd and even would lock its lines for ever. Threads of one process do not die
// alone; a fabric whose clients are processes has to complete their lines before it lets anyone wait.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

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

// Any number of threads at once. Offsets and sizes are the caller's to check (CheckBounds). Allocates nothing.
class LineMemory final : public NodeMemory {
 public:
  // Both must outlive this. The region is aligned to a line and a whole number of lines.
  LineMemory(std::span<std::byte> region, StripeTable& stripes);

  // Executes a READ, a WRITE or an atomic, and leaves the answer in it.
  void Execute(Verb& verb);

  // At most kWindowBytes: one snapshot. More: a snapshot per line and per about kWindowBytes.
  void Read(uint64_t offset, std::span<std::byte> into) const;
  // Line by line; each appears at once.
  void Write(uint64_t offset, std::span<const std::byte> from);
  // The bytes must not be reachable for anyone else until something that follows makes them so.
  void WriteUnreachable(uint64_t offset, std::span<const std::byte> from);
  // CAS, masked CAS or FAA: the whole word as it was before.
  uint64_t Atomic(const Verb& verb);

  // Asks for the cache lines that `verb` will touch, or the first of them if they are many.
  void Prefetch(const Verb& verb) const;

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
  std::atomic_ref<uint64_t> Word(uint64_t offset) const;

  void ReadWindow(uint64_t offset, std::span<std::byte> into) const;
  bool TryReadWindow(const Window& window, uint64_t offset, std::span<std::byte> into) const;
  void ReadWindowLocked(const Window& window, uint64_t offset, std::span<std::byte> into) const;

  void CopyOut(uint64_t offset, std::span<std::byte> into) const;
  void CopyIn(uint64_t offset, std::span<const std::byte> from);
  void MergeIn(uint64_t offset, std::span<const std::byte> from);

  const std::span<std::byte> region_;
  StripeTable& stripes_;
};

}  // namespace farside::fabric::memory
