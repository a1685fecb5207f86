#include "workload/frontier.h"

#include <cassert>

namespace farside::workload {

void Frontier::Acknowledge(uint64_t record) {
  const std::scoped_lock lock(mutex_);
  uint64_t known = known_.load(std::memory_order_relaxed);
  assert(record >= known);
  while (record - known >= acknowledged_.size()) {
    std::vector<bool> larger(2 * acknowledged_.size());
    for (uint64_t i = known; i < known + acknowledged_.size(); ++i) {
      larger[i % larger.size()] = acknowledged_[i % acknowledged_.size()];
    }
    acknowledged_ = std::move(larger);
  }
  acknowledged_[record % acknowledged_.size()] = true;
  while (acknowledged_[known % acknowledged_.size()]) {
    acknowledged_[known % acknowledged_.size()] = false;
    ++known;
  }
  known_.store(known, std::memory_order_release);
}

}  // namespace farside::workload
