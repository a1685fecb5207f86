// Whether this test program was built with a sanitizer. Every step costs several times as much there, so
// tests that repeat something very often repeat it less.
#pragma once

#include <cstdint>

namespace farside {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// What those that search many seeds divide their number by.
inline constexpr uint64_t kFewer = kSanitized ? 8 : 1;

}  // namespace farside
