// Tells the processor that a loop only waits, so that it saves power and leaves room for its sibling.
#pragma once

namespace farside {

inline void PauseProcessor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace farside
