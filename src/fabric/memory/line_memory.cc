#include "fabric/memory/line_memory.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <thread>

#include "base/pause.h"
#include "fabric/memory/own_holds.h"

namespace farside::fabric::memory {
namespace {

constexpr uint64_t kWordBytes = 8;
// A READ of kWindowBytes that does not start on a line touches one line more.
constexpr uint64_t kMaxWindowLines = kWindowBytes / kLineBytes + 1;
static_assert(kMaxWindowLines < StripeTable::kStripes, "the lines of a window have different sequences");
static_assert(kMaxWindowLines <= OwnHold::kReach + 1);

// How often a reader (or a CAS) tries to do without waiting its turn.
constexpr int kOptimisticAttempts = 8;
// A trip may read megabytes; its first lines are worth the most.
constexpr uint64_t kMaxPrefetchedLines = 16;

// Waits for another thread, which may have been preempted: there may be fewer cores than threads.
class Backoff {
 public:
  // True: it is time for a look at a watch.
  bool Wait() {
    if (spins_ == kMaxSpins) {
      std::this_thread::yield();
      return ++yields_ % kYieldsPerLook == 0;
    }
    ++spins_;
    PauseProcessor();
    return false;
  }

 private:
  static constexpr int kMaxSpins = 64;
  static constexpr uint32_t kYieldsPerLook = 32;

  int spins_ = 0;
  uint32_t yields_ = 0;
};

// Copies an aligned line out of memory that others may be writing, each word whole, with acquire.
inline void CopyLineOut(const std::byte* from, std::byte* to) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  // Two words at a time. A load is an acquire on this processor, and an aligned one of 16 bytes takes each of
  // its words whole. In assembler, because the language knows no such load.
  using Two [[gnu::vector_size(16)]] = uint64_t;
#pragma GCC unroll 4
  for (size_t i = 0; i < kLineBytes; i += sizeof(Two)) {
    Two words;
    asm volatile("movdqa %1, %0"
                 : "=x"(words)
                 : "m"(*reinterpret_cast<const Two*>(from + i))
                 : "memory");  // what is loaded behind it stays behind it
    std::memcpy(to + i, &words, sizeof(words));
  }
#else
#pragma GCC unroll 8
  for (size_t i = 0; i < kLineBytes; i += kWordBytes) {
    auto& shared = *const_cast<uint64_t*>(reinterpret_cast<const uint64_t*>(from + i));
    const uint64_t word = std::atomic_ref<uint64_t>(shared).load(std::memory_order_acquire);
    std::memcpy(to + i, &word, kWordBytes);
  }
#endif
}

// A WRITE inside one word needs no staging: the word is stored whole.
bool IsInsideOneWord(uint64_t offset, uint64_t size) { return offset % kWordBytes + size <= kWordBytes; }

}  // namespace

LineMemory::LineMemory(std::span<std::byte> region, StripeTable& stripes, Watch* watch)
    : region_(region), stripes_(stripes), watch_(watch) {
  assert(reinterpret_cast<uintptr_t>(region.data()) % kLineBytes == 0);
  assert(region.size() % kLineBytes == 0);
}

LineMemory::LineMemory(std::span<std::byte> region, StripeTable& stripes, OwnHold& own_hold, Watch* watch)
    : region_(region), stripes_(stripes), own_hold_(&own_hold), watch_(watch) {
  assert(reinterpret_cast<uintptr_t>(region.data()) % kLineBytes == 0);
  assert(region.size() % kLineBytes == 0);
}

LineMemory::LineMemory(std::span<std::byte> region, StripeTable& stripes, Holder holder, Staging& staging,
                       Watch& watch)
    : region_(region), stripes_(stripes), holder_(holder), staging_(&staging), watch_(&watch) {
  assert(holder != 0 && holder != kTheNode);
  assert(reinterpret_cast<uintptr_t>(region.data()) % kLineBytes == 0);
  assert(region.size() % kLineBytes == 0);
}

bool LineMemory::Execute(Verb& verb) {
  switch (verb.kind) {
    case VerbKind::kRead: return Read(verb.at.offset, {verb.into, verb.size});
    case VerbKind::kWrite:
      if (!verb.unreachable) return Write(verb.at.offset, {verb.from, verb.size});
      WriteUnreachable(verb.at.offset, {verb.from, verb.size});
      return true;
    case VerbKind::kCas:
    case VerbKind::kMaskedCas:
    case VerbKind::kFaa: return Atomic(verb, verb.old);
    case VerbKind::kCall:
    case VerbKind::kFence: break;
  }
  assert(false && "not a verb of memory");
  return true;
}

// Acquires what the last holder stored.
bool LineMemory::Take(Sequence& sequence, uint64_t& free, Staging* staging) const {
  Backoff backoff;
  std::optional<Nanos> since;
  while (true) {
    free = sequence.load(std::memory_order_relaxed);
    if (IsFree(free)) {
      // memory/5. The exchange releases it to a thread that finds the sequence taken.
      if (staging != nullptr) staging->sequence.store(free, std::memory_order_relaxed);
      if (TryTake(sequence, free)) return true;
    }
    if (backoff.Wait() && watch_ != nullptr && !watch_->MayBeFinished(sequence, since)) {
      if (staging != nullptr) staging->sequence.store(Staging::kNothing, std::memory_order_relaxed);
      return false;
    }
  }
}

// Not announced while it waits, or own/1 would keep from being freed what it waits for.
inline bool LineMemory::TryTake(Sequence& sequence, uint64_t free) const {
  if (own_hold_ != nullptr) own_hold_->Announce(StripeOf(sequence));
  if (sequence.compare_exchange_strong(free, free | holder_, std::memory_order_seq_cst,
                                       std::memory_order_relaxed)) {
    return true;
  }
  if (own_hold_ != nullptr) own_hold_->Retract(StripeOf(sequence));
  return false;
}

inline void LineMemory::Free(Sequence& sequence, uint64_t free) const {
  sequence.store(free + kOneChange, std::memory_order_release);
  if (own_hold_ != nullptr) own_hold_->Retract(StripeOf(sequence));
}

// Puts the sequence back, so that copies that others make of the same lines at this time stay good.
void LineMemory::FreeUnchanged(Sequence& sequence, uint64_t free) const {
  if (own_hold_ != nullptr) return Free(sequence, free);  // own/1
  sequence.store(free, std::memory_order_release);
}

uint64_t LineMemory::StripeOf(const Sequence& sequence) const {
  return static_cast<uint64_t>(&sequence - stripes_.sequences.data());
}

// ---- reading ----------------------------------------------------------------------------------------

bool LineMemory::Read(uint64_t offset, std::span<std::byte> into) const {
  if (into.size() <= kWindowBytes) return ReadWindow(offset, into);
  while (!into.empty()) {
    // Windows end where lines end, so that no line is read in two halves.
    const uint64_t end = (offset - offset % kLineBytes) + kWindowBytes;
    const size_t size = std::min<size_t>(into.size(), end - offset);
    if (!ReadWindow(offset, into.first(size))) return false;
    into = into.subspan(size);
    offset += size;
  }
  return true;
}

bool LineMemory::ReadWindow(uint64_t offset, std::span<std::byte> into) const {
  if (into.empty()) return true;
  const Window window = WindowOf(offset, into.size());
  if (TryReadWindow(window, offset, into)) [[likely]]
    return true;
  return ReadWindowAgain(window, offset, into);
}

bool LineMemory::ReadWindowAgain(const Window& window, uint64_t offset, std::span<std::byte> into) const {
  Backoff backoff;
  for (int attempt = 1; attempt < kOptimisticAttempts; ++attempt) {
    backoff.Wait();
    if (TryReadWindow(window, offset, into)) return true;
  }
  return ReadWindowHeld(window, offset, into);
}

// The copy is good if there was an instant, after the last first look and before the first second one, at
// which every sequence had its noted value. Each of them was free and has not fallen below that since
// (memory/3), so instead of comparing each, it is enough to compare their sums.
inline bool LineMemory::TryReadWindow(const Window& window, uint64_t offset,
                                      std::span<std::byte> into) const {
  // Up to the end of the table, and from its begin on: nearly always nothing.
  const Sequence* const front = &SequenceOf(window.first_line);
  const Sequence* const end = stripes_.sequences.data() + StripeTable::kStripes;
  const uint64_t unwrapped = std::min<uint64_t>(window.lines, static_cast<uint64_t>(end - front));
  const Sequence* const back = stripes_.sequences.data();
  const uint64_t wrapped = window.lines - unwrapped;

  uint64_t before = 0;
  uint64_t any = 0;
  const auto note = [&before, &any](const Sequence& of_line) {
    const uint64_t sequence = of_line.load(std::memory_order_seq_cst);
    before += sequence;
    any |= sequence;
  };
  for (uint64_t i = 0; i < unwrapped; ++i) note(front[i]);
  for (uint64_t i = 0; i < wrapped; ++i) note(back[i]);
  if (!IsFree(any)) [[unlikely]]
    return false;

  CopyOut(offset, into);

  uint64_t after = 0;
  for (uint64_t i = 0; i < unwrapped; ++i) after += front[i].load(std::memory_order_relaxed);
  for (uint64_t i = 0; i < wrapped; ++i) after += back[i].load(std::memory_order_relaxed);
  return after == before;
}

// Reached by LineMemoryTorture.WritersThatNeverPause_ReadersStillFinish.
bool LineMemory::ReadWindowHeld(const Window& window, uint64_t offset, std::span<std::byte> into) const {
  // memory/4: stripes are taken in ascending order, also if the window wraps around the end of the table.
  const uint64_t first_stripe = window.first_line % StripeTable::kStripes;
  const uint64_t wrapped =
      std::max(first_stripe + window.lines, StripeTable::kStripes) - StripeTable::kStripes;
  const auto stripe_of = [&](uint64_t i) { return i < wrapped ? i : first_stripe + i - wrapped; };
  std::array<uint64_t, kMaxWindowLines> free;
  uint64_t held = 0;
  while (held < window.lines && Take(stripes_.sequences[stripe_of(held)], free[held])) ++held;

  if (held == window.lines) CopyOut(offset, into);

  for (uint64_t i = 0; i < held; ++i) FreeUnchanged(stripes_.sequences[stripe_of(i)], free[i]);
  return held == window.lines;
}

// ---- changing ---------------------------------------------------------------------------------------

bool LineMemory::Write(uint64_t offset, std::span<const std::byte> from) {
  while (!from.empty()) {
    const size_t size = std::min<size_t>(from.size(), kLineBytes - offset % kLineBytes);
    if (!WriteInLine(offset, from.first(size))) return false;
    from = from.subspan(size);
    offset += size;
  }
  return true;
}

bool LineMemory::WriteInLine(uint64_t offset, std::span<const std::byte> from) {
  Sequence& sequence = SequenceOf(offset / kLineBytes);
  Staging* const staging = IsInsideOneWord(offset, from.size()) ? nullptr : staging_;
  if (staging != nullptr) Stage(offset, from);
  uint64_t free = 0;
  if (!Take(sequence, free, staging)) return false;
  CopyIn(offset, from);
  Free(sequence, free);
  return true;
}

void LineMemory::Stage(uint64_t offset, std::span<const std::byte> from) {
  staging_->offset.store(offset, std::memory_order_relaxed);
  staging_->size.store(from.size(), std::memory_order_relaxed);
  size_t word = 0;
  for (; (word + 1) * kWordBytes <= from.size(); ++word) {
    uint64_t bytes;
    std::memcpy(&bytes, from.data() + word * kWordBytes, kWordBytes);
    staging_->bytes[word].store(bytes, std::memory_order_relaxed);
  }
  if (const size_t rest = from.size() % kWordBytes; rest != 0) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, from.data() + word * kWordBytes, rest);
    staging_->bytes[word].store(bytes, std::memory_order_relaxed);
  }
}

void LineMemory::WriteUnreachable(uint64_t offset, std::span<const std::byte> from) {
  if (!from.empty()) CopyIn(offset, from);
}

// A CAS that fails only reads: a word is always whole, so there is nothing to look at twice. One that
// succeeds needs a single locked instruction: if the sequence can be taken at the value noted before the word
// was loaded, then the word has not changed since.
bool LineMemory::Atomic(const Verb& verb, uint64_t& old) {
  const std::atomic_ref<uint64_t> word = Word(verb.at.offset);
  Sequence& sequence = SequenceOf(verb.at.offset / kLineBytes);
  Backoff backoff;
  for (int attempt = 0; attempt < kOptimisticAttempts; ++attempt) {
    const uint64_t free = sequence.load(std::memory_order_seq_cst);
    if (IsFree(free)) {
      const uint64_t found = word.load(std::memory_order_acquire);
      old = found;
      if (!Succeeds(verb, found)) return true;
      if (TryTake(sequence, free)) {
        word.store(NewWord(verb, found), std::memory_order_release);
        Free(sequence, free);
        return true;
      }
    }
    backoff.Wait();
  }

  uint64_t free = 0;
  if (!Take(sequence, free)) return false;
  old = word.load(std::memory_order_acquire);
  if (!Succeeds(verb, old)) {
    FreeUnchanged(sequence, free);
    return true;
  }
  word.store(NewWord(verb, old), std::memory_order_release);
  Free(sequence, free);
  return true;
}

// ---- after a death ----------------------------------------------------------------------------------

size_t LineMemory::Recover(Holder holder, Staging& staging) {
  size_t recovered = 0;
  for (uint64_t stripe = 0; stripe < StripeTable::kStripes; ++stripe) {
    Sequence& sequence = stripes_.sequences[stripe];
    const uint64_t held = sequence.load(std::memory_order_seq_cst);
    if ((held & kHolderMask) != holder) continue;
    const uint64_t free = held & ~kHolderMask;
    Redo(stripe, free, staging);
    sequence.store(free + kOneChange, std::memory_order_release);
    ++recovered;
  }
  staging.sequence.store(Staging::kNothing, std::memory_order_release);
  return recovered;
}

// By compare-and-swap: the number may be given to a client at this moment, but that client cannot have taken
// this sequence at this value, which was not free. For threads of the node, own/1 says the same.
size_t LineMemory::FreeStrays(const std::vector<bool>& in_use, const OwnHolds& own_holds) {
  size_t freed = 0;
  for (uint64_t stripe = 0; stripe < StripeTable::kStripes; ++stripe) {
    Sequence& sequence = stripes_.sequences[stripe];
    uint64_t held = sequence.load(std::memory_order_acquire);
    const uint64_t holder = held & kHolderMask;
    if (holder == 0 || (holder < in_use.size() && in_use[holder])) continue;
    if (holder == kTheNode && own_holds.Have(stripe)) continue;
    const uint64_t free = (held & ~kHolderMask) + kOneChange;
    if (sequence.compare_exchange_strong(held, free, std::memory_order_seq_cst)) ++freed;
  }
  return freed;
}

bool LineMemory::Holds(Holder holder) const {
  return std::any_of(stripes_.sequences.begin(), stripes_.sequences.end(),
                     [holder](const Sequence& sequence) {
                       return (sequence.load(std::memory_order_acquire) & kHolderMask) == holder;
                     });
}

// Copied before it is checked: it stands in memory that others may write to.
void LineMemory::Redo(uint64_t stripe, uint64_t free, const Staging& staging) {
  if (staging.sequence.load(std::memory_order_acquire) != free) return;
  const uint64_t offset = staging.offset.load(std::memory_order_relaxed);
  const uint64_t size = staging.size.load(std::memory_order_relaxed);
  if (offset >= region_.size() || offset / kLineBytes % StripeTable::kStripes != stripe) return;
  if (size == 0 || size > kLineBytes - offset % kLineBytes) return;
  std::array<uint64_t, kLineBytes / kWordBytes> bytes;
  for (size_t word = 0; word < bytes.size(); ++word) {
    bytes[word] = staging.bytes[word].load(std::memory_order_relaxed);
  }
  CopyIn(offset, std::as_bytes(std::span(bytes)).first(size));
}

// ---- the node's own CPU -----------------------------------------------------------------------------

// Through the sequence, although a word is always whole: words of a completed WRITE may be on their way.
uint64_t LineMemory::Load(uint64_t offset) const {
  uint64_t word = 0;
  Read(offset, std::as_writable_bytes(std::span(&word, 1)));
  return word;
}

// Under the sequence, so that a READ of the line finds two stores to it in program order.
void LineMemory::Store(uint64_t offset, uint64_t word) {
  Sequence& sequence = SequenceOf(offset / kLineBytes);
  uint64_t free = 0;
  if (!Take(sequence, free)) return;
  Word(offset).store(word, std::memory_order_release);
  Free(sequence, free);
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
  assert(offset + left <= region_.size());
  const std::byte* from = region_.data() + offset;
  const auto load_word = [&from] {
    auto& shared = *const_cast<uint64_t*>(reinterpret_cast<const uint64_t*>(from));
    return std::atomic_ref<uint64_t>(shared).load(std::memory_order_acquire);
  };
  const auto copy_words = [&](size_t bytes) {
    for (; bytes >= kWordBytes;
         bytes -= kWordBytes, from += kWordBytes, to += kWordBytes, left -= kWordBytes) {
      const uint64_t word = load_word();
      std::memcpy(to, &word, kWordBytes);
    }
  };
  // Nearly everything is whole lines.
  copy_words(std::min<size_t>(left, -offset % kLineBytes));
  for (; left >= kLineBytes; left -= kLineBytes, from += kLineBytes, to += kLineBytes) CopyLineOut(from, to);
  copy_words(left);
  if (left != 0) {
    const uint64_t word = load_word();
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

// Stores some bytes of one word. memory/1: another client may change the other bytes at this moment, by an
// unreachable WRITE that holds no lock.
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

void LineMemory::Prefetch(uint64_t offset, uint64_t size, bool mutates) const {
  if (size == 0) return;
  const uint64_t first_line = offset / kLineBytes;
  const uint64_t last_line = (offset + size - 1) / kLineBytes;
  const uint64_t lines = std::min(last_line - first_line + 1, kMaxPrefetchedLines);
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
