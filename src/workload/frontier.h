// How many records there are while clients insert: those whose insert has been answered, without gaps.
//
// Shared by all clients of a run. A number is claimed before its record is inserted and acknowledged
// afterwards; readers look only at records below the first that is not acknowledged, and so find all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace farside::workload {

class Frontier {
 public:
  explicit Frontier(uint64_t records) : known_(records), next_(records) {}

  // The number of the next record to be inserted, by the caller.
  uint64_t Claim() { return next_.fetch_add(1, std::memory_order_relaxed); }
  // It has been inserted (or has failed, which is counted elsewhere).
  void Acknowledge(uint64_t record);
  // All records below this number are there.
  uint64_t known() const { return known_.load(std::memory_order_acquire); }

 private:
  static constexpr size_t kFirstSlots = 1024;

  std::atomic<uint64_t> known_;
  std::atomic<uint64_t> next_;
  std::mutex mutex_;
  // Which of the records from known_ on are acknowledged: a ring, by number; it grows when one lags far
  // behind.
  std::vector<bool> acknowledged_ = std::vector<bool>(kFirstSlots);
};

}  // namespace farside::workload
