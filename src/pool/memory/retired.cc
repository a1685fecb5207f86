#include "pool/memory/retired.h"

#include <algorithm>

namespace farside::pool {

void RetiredQueue::Push(const Retired& item) {
  while (!minima_.empty() && minima_.back().birth >= item.birth) minima_.PopBack();
  minima_.PushBack({.number = items_.end(), .birth = item.birth});
  items_.PushBack(item);
  if (item.never_seen) end_of_never_seen_ = items_.end();
}

void RetiredQueue::Stamp(uint64_t end, uint64_t epoch) {
  for (unstamped_ = std::max(unstamped_, items_.first()); unstamped_ < std::min(end, items_.end());
       ++unstamped_) {
    Retired& item = items_[unstamped_];
    if (item.stamp == Retired::kUnstamped) item.stamp = epoch;
  }
}

void RetiredQueue::PopDone() {
  while (!items_.empty() && items_[items_.first()].done) {
    if (minima_[minima_.first()].number == items_.first()) minima_.PopFront();
    items_.PopFront();
  }
}

}  // namespace farside::pool
