// How bytes of a mapped region are made durable: what was flushed and drained survives a power cut.
//
//   libpmem   the mapping is the memory itself (DAX), so a line is durable when it has left the caches of the
//             processor, which it can see to by itself
//   msync     the mapping is a cache of the kernel's, so its pages have to be written to the file
//
// Both are of a Region (Region::NewMedium), and used by one thread at a time: handlers of a node run one at a
// time.
//
// INVARIANT medium/1: a failure stays. When the kernel could not write a page, it is unknown what of the page
// is in the file, and a second attempt may succeed though nothing was written: the kernel has taken the page
// for clean since the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "farside/result.h"

namespace farside::fabric::memory {

class Medium {
 public:
  virtual ~Medium() = default;
  // "libpmem" or "msync".
  virtual std::string_view name() const = 0;

  // Begins to make these bytes durable, with what was stored in them so far.
  virtual void Flush(uint64_t offset, uint64_t size) = 0;
  // Returns when all that was flushed is durable, or has failed.
  void Drain() {
    if (failure_.has_value()) return;
    if (Status drained = DrainAll(); !drained.ok()) failure_ = drained.error();
  }
  // Why nothing is durable any more.
  const std::optional<Error>& failure() const { return failure_; }

 private:
  virtual Status DrainAll() = 0;

  std::optional<Error> failure_;
};

// Ranges of bytes that do not touch each other: what is added to them is merged.
class MergedRanges {
 public:
  void Add(uint64_t begin, uint64_t end);
  void Clear() { end_of_.clear(); }
  // By their beginnings.
  const std::map<uint64_t, uint64_t>& end_of() const { return end_of_; }

 private:
  std::map<uint64_t, uint64_t> end_of_;
};

// The region is mapped from the file of this descriptor; both must outlive the medium.
std::unique_ptr<Medium> NewMsyncMedium(std::span<std::byte> region, int file);

// Null if this build has no libpmem, or if the processor cannot by itself make these bytes durable.
// `synchronous`: they were mapped with MAP_SYNC.
std::unique_ptr<Medium> NewPmemMedium(std::span<std::byte> region, bool synchronous);

}  // namespace farside::fabric::memory
