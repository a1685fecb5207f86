// A lifeline: a word of shared memory in which the kernel notes the death of a thread, however it dies.
//
//   daemon                                          clients
//   { Lifeline lifeline(header.lifeline); serve }   if (IsCut(header.lifeline)) the daemon is gone
//
// It is the robust futex of the kernel (get_robust_list(2)), without anything that waits for it: while a
// thread ends, and before its process closes its sockets, the kernel sets a bit in the words that the thread
// holds. So a look is a load.
//
// The list that the kernel walks stands in the memory of the daemon alone. What clients write to the shared
// word can at most hide the daemon's death from them, or claim it.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace farside::fabric::shm {

// Whether the thread has ended that held it.
inline bool IsCut(const std::atomic<uint32_t>& lifeline) {
  return (lifeline.load(std::memory_order_acquire) & FUTEX_OWNER_DIED) != 0;
}

// Holds it, from its construction to its end by the same thread, which uses no robust mutexes meanwhile. If
// the kernel does not do that, the word stays zero, and never looks cut.
class Lifeline {
 public:
  explicit Lifeline(std::atomic<uint32_t>& word);
  Lifeline(const Lifeline&) = delete;
  Lifeline& operator=(const Lifeline&) = delete;
  ~Lifeline();

 private:
  std::atomic<uint32_t>& word_;
  robust_list_head list_{};
  robust_list entry_{};
  void* list_before_ = nullptr;  // that of the C library
  size_t size_before_ = 0;
  bool held_ = false;
};

}  // namespace farside::fabric::shm
