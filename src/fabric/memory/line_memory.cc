#include "fabric/memory/line_memory.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <thread>

#include "base/pause.h"

namespace farside::fabric::memory {
namespace {

constexpr uint64_t kWordBytes = 8;
// A READ of kWindowBytes that does not start on a line touches one line more.
constexpr uint64_t kMaxWindowLines = kWindowBytes / kLineBytes + 1;
static_assert(kMaxWindowLines < StripeTable::kStripes, "the lines of a window have different sequences");

// How often a reader (or a CAS) tries to do without the lock.
constexpr int kOptimisticAttempts = 8;
// A trip may read megabytes; its first lines are worth the most.
constexpr uint64_t kMaxPrefetchedLines = 16;

constexpr bool IsOdd(uint64_t sequence) { return (sequence & 1) != 0; }

// Waits for another thread, which may have been preempted: there may be fewer cores than threads.
class Backoff {
 public:
  void Wait() {
    if (spins_ == kMaxSpins) {
      std::this_thread::yield();
      return;
    }
    ++spins_;
    PauseProcessor();
  }

 private:
  static constexpr int kMaxSpins = 64;
  int spins_ = 0;
};

// Makes a sequence odd and returns the even value it had. Acquires what the last holder stored.
uint64_t Lock(Sequence& sequence) {
  Backoff backoff;
  while (true) {
    uint64_t even = sequence.load(std::memory_order_relaxed);
    if (!IsOdd(even) && sequence.compare_exchange_weak(even, even + 1, std::memory_order_seq_cst,
                                                       std::memory_order_relaxed)) {
      return even;
    }
    backoff.Wait();
  }
}

// The right to change the words of a line.
class LineLock {
 public:
  explicit LineLock(Sequence& sequence) : sequence_(sequence), even_(Lock(sequence)) {}
  LineLock(const LineLock&) = delete;
  LineLock& operator=(const LineLock&) = delete;
  ~LineLock() { sequence_.store(even_ + 2, std::memory_order_release); }

 private:
  Sequence& sequence_;
  const uint64_t even_;
};

// A reader that locked has changed nothing: it puts the sequence back, and copies that others make of the
// same lines at this time stay good.
void UnlockUnchanged(Sequence& sequence) {
  sequence.store(sequence.load(std::memory_order_relaxed) - 1, std::memory_order_release);
}

}  // namespace

LineMemory::LineMemory(std::span<std::byte> region, StripeTable& stripes)
    : region_(region), stripes_(stripes) {
  assert(reinterpret_cast<uintptr_t>(region.data()) % kLineBytes == 0);
  assert(region.size() % kLineBytes == 0);
}

void LineMemory::Execute(Verb& verb) {
  switch (verb.kind) {
    case VerbKind::kRead: Read(verb.at.offset, {verb.into, verb.size}); return;
    case VerbKind::kWrite:
      if (verb.unreachable) {
        WriteUnreachable(verb.at.offset, {verb.from, verb.size});
      } else {
        Write(verb.at.offset, {verb.from, verb.size});
      }
      return;
    case VerbKind::kCas:
    case VerbKind::kMaskedCas:
    case VerbKind::kFaa: verb.old = Atomic(verb); return;
    case VerbKind::kCall:
    case VerbKind::kFence: break;
  }
  assert(false && "not a verb of memory");
}

// ---- reading ----------------------------------------------------------------------------------------

void LineMemory::Read(uint64_t offset, std::span<std::byte> into) const {
  if (into.size() <= kWindowBytes) return ReadWindow(offset, into);
  while (!into.empty()) {
    // Windows end where lines end, so that no line is read in two halves.
    const uint64_t end = (offset - offset % kLineBytes) + kWindowBytes;
    const size_t size = std::min<size_t>(into.size(), end - offset);
    ReadWindow(offset, into.first(size));
    into = into.subspan(size);
    offset += size;
  }
}

void LineMemory::ReadWindow(uint64_t offset, std::span<std::byte> into) const {
  if (into.empty()) return;
  const Window window = WindowOf(offset, into.size());
  if (TryReadWindow(window, offset, into)) return;
  Backoff backoff;
  for (int attempt = 1; attempt < kOptimisticAttempts; ++attempt) {
    backoff.Wait();
    if (TryReadWindow(window, offset, into)) return;
  }
  ReadWindowLocked(window, offset, into);
}

// The copy is good if there was an instant, after the last first look and before the first second one, at
// which every sequence had its noted value. Each of them was even and has not decreased since (memory/3), so
// instead of comparing each, it is enough to compare their sums.
bool LineMemory::TryReadWindow(const Window& window, uint64_t offset, std::span<std::byte> into) const {
  uint64_t before = 0;
  uint64_t any = 0;
  for (uint64_t i = 0; i < window.lines; ++i) {
    const uint64_t sequence = SequenceOf(window.first_line + i).load(std::memory_order_seq_cst);
    before += sequence;
    any |= sequence;
  }
  if (IsOdd(any)) return false;

  CopyOut(offset, into);

  uint64_t after = 0;
  for (uint64_t i = 0; i < window.lines; ++i) {
    after += SequenceOf(window.first_line + i).load(std::memory_order_relaxed);
  }
  return after == before;
}

// Reached by LineMemoryTorture.WritersThatNeverPause_ReadersStillFinish.
void LineMemory::ReadWindowLocked(const Window& window, uint64_t offset, std::span<std::byte> into) const {
  // memory/4: stripes are taken in ascending order, also if the window wraps around the end of the table.
  const uint64_t first_stripe = window.first_line % StripeTable::kStripes;
  const uint64_t wrapped =
      std::max(first_stripe + window.lines, StripeTable::kStripes) - StripeTable::kStripes;
  for (uint64_t stripe = 0; stripe < wrapped; ++stripe) Lock(stripes_.sequences[stripe]);
  for (uint64_t i = 0; i < window.lines - wrapped; ++i) Lock(stripes_.sequences[first_stripe + i]);

  CopyOut(offset, into);

  for (uint64_t i = 0; i < window.lines; ++i) UnlockUnchanged(SequenceOf(window.first_line + i));
}

// ---- changing ---------------------------------------------------------------------------------------

void LineMemory::Write(uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const size_t size = std::min<size_t>(from.size(), kLineBytes - offset % kLineBytes);
    {
      const LineLock lock(SequenceOf(offset / kLineBytes));
      CopyIn(offset, from.first(size));
    }
    from = from.subspan(size);
    offset += size;
  }
}

void LineMemory::WriteUnreachable(uint64_t offset, std::span<const std::byte> from) {
  if (!from.empty()) CopyIn(offset, from);
}

// A CAS that fails only reads: a word is always whole, so there is nothing to look at twice. One that succeeds
// needs a single locked instruction: if the sequence can be made odd from the value noted before the word was
// loaded, then the word has not changed since.
uint64_t LineMemory::Atomic(const Verb& verb) {
  const std::atomic_ref<uint64_t> word = Word(verb.at.offset);
  Sequence& sequence = SequenceOf(verb.at.offset / kLineBytes);
  Backoff backoff;
  for (int attempt = 0; attempt < kOptimisticAttempts; ++attempt) {
    uint64_t even = sequence.load(std::memory_order_seq_cst);
    if (!IsOdd(even)) {
      const uint64_t old = word.load(std::memory_order_acquire);
      if (!Succeeds(verb, old)) return old;
      if (sequence.compare_exchange_strong(even, even + 1, std::memory_order_seq_cst,
                                           std::memory_order_relaxed)) {
        word.store(NewWord(verb, old), std::memory_order_release);
        sequence.store(even + 2, std::memory_order_release);
        return old;
      }
    }
    backoff.Wait();
  }

  const uint64_t even = Lock(sequence);
  const uint64_t old = word.load(std::memory_order_acquire);
  const bool succeeds = Succeeds(verb, old);
  if (succeeds) word.store(NewWord(verb, old), std::memory_order_release);
  sequence.store(succeeds ? even + 2 : even, std::memory_order_release);
  return old;
}

// ---- the node's own CPU -----------------------------------------------------------------------------

// Through the sequence, although a word is always whole: words of a completed WRITE may be on their way.
uint64_t LineMemory::Load(uint64_t offset) const {
  uint64_t word = 0;
  Read(offset, std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

// Under the lock, so that a READ of the line finds two stores to it in program order.
void LineMemory::Store(uint64_t offset, uint64_t word) {
  const LineLock lock(SequenceOf(offset / kLineBytes));
  Word(offset).store(word, std::memory_order_release);
}

// ---- copying ----------------------------------------------------------------------------------------

LineMemory::Window LineMemory::WindowOf(uint64_t offset, uint64_t size) {
  const uint64_t first_line = offset / kLineBytes;
  const uint64_t last_line = (offset + size - 1) / kLineBytes;
  assert(last_line - first_line < kMaxWindowLines);
  return {first_line, last_line - first_line + 1};
}

std::atomic_ref<uint64_t> LineMemory::Word(uint64_t offset) const {
  assert(offset % kWordBytes == 0 && offset + kWordBytes <= region_.size());
  return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(region_.data() + offset));
}

// The local side of a copy is private and may lie at any address; memcpy of a word is one move.
void LineMemory::CopyOut(uint64_t offset, std::span<std::byte> into) const {
  std::byte* to = into.data();
  size_t left = into.size();

  if (const uint64_t skip = offset % kWordBytes; skip != 0) {
    const uint64_t word = Word(offset - skip).load(std::memory_order_acquire);
    const size_t bytes = std::min<size_t>(left, kWordBytes - skip);
    std::memcpy(to, reinterpret_cast<const std::byte*>(&word) + skip, bytes);
    to += bytes;
    left -= bytes;
    offset += bytes;
  }
  for (; left >= kWordBytes; left -= kWordBytes) {
    const uint64_t word = Word(offset).load(std::memory_order_acquire);
    std::memcpy(to, &word, kWordBytes);
    to += kWordBytes;
    offset += kWordBytes;
  }
  if (left != 0) {
    const uint64_t word = Word(offset).load(std::memory_order_acquire);
    std::memcpy(to, &word, left);
  }
}

void LineMemory::CopyIn(uint64_t offset, std::span<const std::byte> from) {
  if (const uint64_t skip = offset % kWordBytes; skip != 0) {
    const size_t bytes = std::min<size_t>(from.size(), kWordBytes - skip);
    MergeIn(offset, from.first(bytes));
    from = from.subspan(bytes);
    offset += bytes;
  }
  const std::byte* next = from.data();
  size_t left = from.size();
  for (; left >= kWordBytes; left -= kWordBytes) {
    uint64_t word;
    std::memcpy(&word, next, kWordBytes);
    Word(offset).store(word, std::memory_order_release);
    next += kWordBytes;
    offset += kWordBytes;
  }
  if (left != 0) MergeIn(offset, {next, left});
}

// Stores some bytes of one word. memory/1: the other bytes may be changed by somebody else at this moment,
// by an unreachable WRITE that holds no lock.
void LineMemory::MergeIn(uint64_t offset, std::span<const std::byte> from) {
  const uint64_t skip = offset % kWordBytes;
  const std::atomic_ref<uint64_t> word = Word(offset - skip);
  uint64_t old = word.load(std::memory_order_relaxed);
  uint64_t merged;
  do {
    merged = old;
    std::memcpy(reinterpret_cast<std::byte*>(&merged) + skip, from.data(), from.size());
  } while (!word.compare_exchange_weak(old, merged, std::memory_order_release, std::memory_order_relaxed));
}

void LineMemory::Prefetch(const Verb& verb) const {
  if (verb.size == 0) return;
  const uint64_t first_line = verb.at.offset / kLineBytes;
  const uint64_t last_line = (verb.at.offset + verb.size - 1) / kLineBytes;
  const uint64_t lines = std::min(last_line - first_line + 1, kMaxPrefetchedLines);
  const bool mutates = Mutates(verb.kind);
  for (uint64_t i = 0; i < lines; ++i) {
    const std::byte* line = region_.data() + (first_line + i) * kLineBytes;
    if (mutates) {
      __builtin_prefetch(line, 1);
    } else {
      __builtin_prefetch(line, 0);
    }
  }
  constexpr uint64_t kSequencesPerCacheLine = kLineBytes / sizeof(Sequence);
  for (uint64_t i = 0; i < lines; i += kSequencesPerCacheLine)
    __builtin_prefetch(&SequenceOf(first_line + i));
}

}  // namespace farside::fabric::memory
