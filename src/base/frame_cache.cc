#include <array>
#include <cstddef>
#include <cstdint>
#include <new>

#include "farside/task.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace farside {
namespace {

// Frames are rounded up to whole granules; one free list per number of granules. They are aligned to a
// granule too: layouts of far memory are often aligned to a cache line, and g++ 12 does not ask for more than
// operator new gives, whatever the locals of a coroutine need.
constexpr size_t kGranule = 64;
constexpr std::align_val_t kAlignment{kGranule};
constexpr size_t kLargestCached = 16 * 1024;  // larger frames go to the heap
constexpr size_t kClasses = kLargestCached / kGranule + 1;

struct FreeFrame {
  FreeFrame* next;
};

// A cached frame must not be touched: AddressSanitizer is told so, or recycling would hide
// uses of dead coroutine frames from it.
void Poison([[maybe_unused]] void* frame, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(frame, bytes);
#endif
}
void Unpoison([[maybe_unused]] void* frame, [[maybe_unused]] size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(frame, bytes);
#endif
}

class ThreadFrames {
 public:
  ThreadFrames() = default;
  ThreadFrames(const ThreadFrames&) = delete;
  ThreadFrames& operator=(const ThreadFrames&) = delete;
  ~ThreadFrames() {
    for (size_t granules = 0; granules < kClasses; ++granules) {
      while (void* frame = Pop(granules)) ::operator delete(frame, kAlignment);
    }
  }

  void* Pop(size_t granules) {
    FreeFrame* frame = free_[granules];
    if (frame == nullptr) return nullptr;
    Unpoison(frame, granules * kGranule);
    free_[granules] = frame->next;
    return frame;
  }

  void Push(void* memory, size_t granules) {
    auto* frame = new (memory) FreeFrame{free_[granules]};
    free_[granules] = frame;
    Poison(frame, granules * kGranule);
  }

 private:
  std::array<FreeFrame*, kClasses> free_{};
};

thread_local ThreadFrames frames;

}  // namespace

void* FrameCache::Allocate(size_t bytes) {
  const size_t granules = (bytes + kGranule - 1) / kGranule;
  if (granules >= kClasses) return ::operator new(bytes, kAlignment);
  if (void* frame = frames.Pop(granules)) return frame;
  return ::operator new(granules* kGranule, kAlignment);
}

void FrameCache::Free(void* frame, size_t bytes) noexcept {
  const size_t granules = (bytes + kGranule - 1) / kGranule;
  if (granules >= kClasses) {
    ::operator delete(frame, kAlignment);
  } else {
    frames.Push(frame, granules);
  }
}

}  // namespace farside
