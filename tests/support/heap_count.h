// Counts allocations on the heap, for tests of code that must not allocate in a steady state.
#pragma once

#include <cstdint>

#include "tests/support/sanitized.h"

namespace farside {

// Sanitizers own operator new, and a second replacement would blind them: there, nothing is counted. Tests
// still run the code, and skip only the comparison of counts.
inline constexpr bool kHeapIsCounted = !kSanitized;

// Calls of operator new by this thread so far.
uint64_t HeapAllocations();
// Bytes that all threads have on the heap at this moment, as the C library counts them; 0 under sanitizers.
uint64_t HeapBytes();

}  // namespace farside
