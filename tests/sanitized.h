// Whether this test program was built with a sanitizer. Every step costs several times as much there, so tests
// that repeat something very often repeat it less.
#pragma once

namespace farside {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace farside
