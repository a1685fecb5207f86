#include "fabric/shm/lifeline.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace farside::fabric::shm {

static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

Lifeline::Lifeline(std::atomic<uint32_t>& word) : word_(word) {
  list_.list.next = &entry_;
  entry_.next = &list_.list;
  list_.futex_offset = reinterpret_cast<char*>(&word_) - reinterpret_cast<char*>(&entry_);
  if (::syscall(SYS_get_robust_list, 0, &list_before_, &size_before_) != 0) return;
  // The kernel cuts only what bears the number of the thread.
  word_.store(static_cast<uint32_t>(::syscall(SYS_gettid)), std::memory_order_release);
  held_ = ::syscall(SYS_set_robust_list, &list_, sizeof list_) == 0;
  if (!held_) word_.store(0, std::memory_order_release);
}

Lifeline::~Lifeline() {
  if (!held_) return;
  word_.store(FUTEX_OWNER_DIED, std::memory_order_release);
  ::syscall(SYS_set_robust_list, list_before_, size_before_);
}

}  // namespace farside::fabric::shm
