// ForkGuard: whether this process is the one in which an object was made, or a child of it by fork.
//
// A child of fork has a copy of the memory of its parent, but neither its threads nor a right to its
// connections, its files and the memory that it shares. So in a child every object of the parent is dead:
// calls are refused, and destructors leave alone what others share.
//
// A question costs two loads and a comparison. All guards of a process compare their generation with one
// word, in a page of its own that the kernel empties in a child (MADV_WIPEONFORK). The first guard that is
// made in a child begins the next generation there.
#pragma once

#include <atomic>
#include <cstdint>

#include "farside/result.h"

namespace farside {

class ForkGuard {
 public:
  ForkGuard() : generation_(Generation()) {}

  bool forked() const { return word_->load(std::memory_order_relaxed) != generation_; }

  // What calls on objects of the parent return in a child.
  static Error Refusal();
  // Keeps an object of the parent, which must not be destroyed in a child, from looking like a leak.
  static void KeepForever(const void* object);

 private:
  // Of this process. Sets `word_` when it is called for the first time.
  static uint64_t Generation();

  // Global, since it says something about the process. Never changes once it is set.
  static std::atomic<uint64_t>* word_;

  uint64_t generation_;
};

}  // namespace farside
