#include "base/fork_guard.h"

#include <pthread.h>
#include <sys/mman.h>

#include <mutex>
#include <new>
#include <vector>

namespace farside {
namespace {

using Word = std::atomic<uint64_t>;

// One word is asked for, one page is given. The page is never given back.
Word* MakeWord() {
  static Word plain{0};
  void* const page =
      ::mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return &plain;
  static_cast<void>(::madvise(page, sizeof(Word), MADV_WIPEONFORK));
  return new (page) Word(0);
}

}  // namespace

std::atomic<uint64_t>* ForkGuard::word_ = nullptr;

uint64_t ForkGuard::Generation() {
  static std::mutex mutex;
  static uint64_t last = 0;  // of this process and the ones before it
  // The kernel empties the page whatever call makes the child. The handler is for kernels that cannot.
  [[maybe_unused]] static const int registered = [] {
    word_ = MakeWord();
    return ::pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); },
                            [] {
                              word_->store(0, std::memory_order_relaxed);
                              mutex.unlock();
                            });
  }();
  const std::scoped_lock lock(mutex);
  if (word_->load(std::memory_order_relaxed) == 0) word_->store(++last, std::memory_order_relaxed);
  return word_->load(std::memory_order_relaxed);
}

Error ForkGuard::Refusal() {
  return Error(ErrorCode::kInvalidArgument,
               "this process is a fork of the one that opened the pool; open the pool again in this process");
}

void ForkGuard::KeepForever(const void* object) {
  static std::mutex mutex;
  static auto* const kept = new std::vector<const void*>();
  const std::scoped_lock lock(mutex);
  kept->push_back(object);
}

}  // namespace farside
