// Counts allocations on the heap, for tests of code that must not allocate in a steady state.
#pragma once

#include <cstdint>

namespace farside {

// Sanitizers own operator new, and a second replacement would blind them: there, nothing is counted. Tests
// still run the code, and skip only the comparison of counts.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kHeapIsCounted = false;
#else
inline constexpr bool kHeapIsCounted = true;
#endif

// Calls of operator new by this thread so far.
uint64_t HeapAllocations();

}  // namespace farside
