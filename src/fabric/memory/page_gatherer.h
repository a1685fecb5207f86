// Gathers the small pages of shared memory into huge ones, while the memory fills.
//
// Where no huge pages are reserved, most systems give small ones to memory that processes share, and every
// access to a large table then misses the TLB. But a process can ask for what is there to be gathered
// (MADV_COLLAPSE, Linux 6.1): the kernel copies a range of 2 MiB into one huge page, for all processes that
// have mapped it at an address that allows it (map_shared.h). Processes notice nothing, except that an access
// to the range may have to wait for about a millisecond.
//
//   PageGatherer gatherer(region.bytes(), region.descriptor());
//   while (gatherer.Step() == PageGatherer::Next::kMore) continue;
//
// A range is gathered when at least half of its pages are there: the region so takes at most twice the memory
// that was used. Each is gathered once; the kernel may split it again when memory is short, and then it stays
// like that.
//
// A pass over the region begins when the file has more pages than at the last one, which costs one fstat to
// find out. It jumps over what is empty, and what was gathered already. So it is cheap to have a gatherer for
// a large region in which nothing happens.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/log.h"

namespace farside::fabric::memory {

class PageGatherer {
 public:
  enum class Next : uint8_t {
    kMore,   // this pass is not over
    kIdle,   // everything is gathered that can be; look again when something may have been stored
    kLater,  // some could not be gathered just now, because there is no huge page, or they are in use
    kNever,  // this kernel does not do it
  };

  // Whether this kernel does it for memory that is made by Region::Shareable. Tries it on a little of it.
  static bool KernelCan();

  // Memory without reserved huge pages, and its descriptor. Both must outlive this.
  PageGatherer(std::span<std::byte> region, int descriptor);

  // Looks at kLooks ranges and gathers kGathers of them, at most. By one thread at a time.
  Next Step();

  // Ranges of kHugePageBytes.
  uint64_t gathered() const { return gathered_; }

  static constexpr uint64_t kLooks = 64;
  static constexpr uint64_t kGathers = 8;

 private:
  enum class Outcome : uint8_t { kGathered, kNotNow, kNoMemory, kImpossible };

  std::optional<uint64_t> BlocksInFile() const;
  // A range in which there is something, from `range` on. All before it are done, or empty.
  std::optional<uint64_t> NextWithData(uint64_t range) const;
  bool IsHalfFull(uint64_t range);
  Outcome Gather(uint64_t range) const;
  Next EndPass();

  const std::span<std::byte> region_;
  const int descriptor_;
  const uint64_t ranges_;       // whole ones
  std::vector<bool> done_;      // of each range: gathered, or cannot be
  std::vector<uint8_t> pages_;  // room for what the kernel says of a range
  uint64_t gathered_ = 0;
  bool ended_ = false;  // for good

  // Of the pass.
  uint64_t next_ = 0;                    // 0: it has not begun
  uint64_t blocks_at_begin_ = 0;         // of the file
  bool some_left_ = false;               // that could not be gathered just now
  std::optional<uint64_t> last_blocks_;  // blocks_at_begin_ of the last pass, if it left nothing
};

// A thread that steps a gatherer.
class PageGathererThread {
 public:
  // As for the gatherer; the logger must outlive this, too.
  PageGathererThread(std::span<std::byte> region, int descriptor, Logger& log);
  PageGathererThread(const PageGathererThread&) = delete;
  PageGathererThread& operator=(const PageGathererThread&) = delete;
  // Waits for the step that runs.
  ~PageGathererThread();

 private:
  void Run();

  PageGatherer gatherer_;
  Logger& log_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool closing_ = false;  // under mutex_
  std::thread thread_;
};

}  // namespace farside::fabric::memory
