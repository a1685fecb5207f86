#include "fabric/pending.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace farside::fabric {

void TripQueue::Remove(Trip& trip) noexcept {
  Trip*& slot = SlotOf(reinterpret_cast<uintptr_t>(trip.backend_data));
  assert(slot == &trip);
  slot = nullptr;
  DropAbandonedEnds();
}

void TripQueue::Grow() {
  std::vector<Trip*> larger(slots_.size() * 2);
  for (uintptr_t ticket = head_; ticket != tail_; ++ticket)
    larger[ticket & (larger.size() - 1)] = SlotOf(ticket);
  slots_ = std::move(larger);
}

void TripQueue::DropAbandonedEnds() {
  while (head_ != tail_ && SlotOf(head_) == nullptr) ++head_;
  while (head_ != tail_ && SlotOf(tail_ - 1) == nullptr) --tail_;
}

void TimerList::Push(Timer& timer) {
  const auto due_later = [](const Timer* waiting, const Timer* added) { return waiting->due > added->due; };
  timers_.insert(std::lower_bound(timers_.begin(), timers_.end(), &timer, due_later), &timer);
}

Timer* TimerList::PopDue(Nanos now) {
  if (timers_.empty() || timers_.back()->due > now) return nullptr;
  Timer* const due = timers_.back();
  timers_.pop_back();
  return due;
}

void TimerList::Remove(Timer& timer) noexcept { std::erase(timers_, &timer); }

bool TimerList::ResumeDue(Nanos now) {
  bool resumed = false;
  for (size_t round = timers_.size(); round > 0; --round) {
    Timer* const due = PopDue(now);
    if (due == nullptr) break;
    due->waiter.resume();
    resumed = true;
  }
  return resumed;
}

}  // namespace farside::fabric
