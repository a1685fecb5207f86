#include "tests/support/heap_count.h"

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

namespace farside {
namespace {

thread_local uint64_t allocations = 0;

}  // namespace

uint64_t HeapAllocations() { return allocations; }

uint64_t HeapBytes() {
  if (!kHeapIsCounted) return 0;
  const struct mallinfo2 heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

}  // namespace farside

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// Replacements for the whole program. The array and nothrow forms of the library call these.
void* operator new(size_t bytes) {
  ++farside::allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

void* operator new(size_t bytes, std::align_val_t alignment) {
  ++farside::allocations;
  const auto align = static_cast<size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

#endif
