// Containers for what a client has in flight, for backends that need them. Both keep their memory, so a
// steady state allocates nothing. Both are used by one thread.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "fabric/client.h"
#include "fabric/trip.h"

namespace farside::fabric {

// Trips that were started and not executed yet, oldest first: a ring in which every trip has a ticket.
//
//   slots   | .. | trip | null | trip | trip | .. |      null: abandoned
//                  ^ head_                     ^ tail_    tickets; ticket mod size is the slot
//
// INVARIANT: the slots of head_ and of tail_ - 1 hold trips, unless the queue is empty.
class TripQueue {
 public:
  bool empty() const { return head_ == tail_; }
  // With the abandoned ones in between.
  size_t size() const { return tail_ - head_; }

  void Push(Trip& trip) {
    if (size() == slots_.size()) Grow();
    trip.backend_data = reinterpret_cast<void*>(tail_);  // NOLINT(performance-no-int-to-ptr): never followed
    SlotOf(tail_) = &trip;
    ++tail_;
  }
  // The oldest; the queue must not be empty.
  Trip& Pop() {
    assert(!empty());
    Trip& oldest = *SlotOf(head_);
    ++head_;
    while (head_ != tail_ && SlotOf(head_) == nullptr) ++head_;
    return oldest;
  }
  void Remove(Trip& trip) noexcept;

 private:
  static constexpr size_t kFirstSlots = 64;

  Trip*& SlotOf(uintptr_t ticket) { return slots_[ticket & (slots_.size() - 1)]; }
  void Grow();
  void DropAbandonedEnds();

  std::vector<Trip*> slots_ = std::vector<Trip*>(kFirstSlots);  // a power of two
  uintptr_t head_ = 0;
  uintptr_t tail_ = 0;
};

// Timers that were started and are not due yet. Few at a time (operations that back off), so a sorted vector.
class TimerList {
 public:
  bool empty() const { return timers_.empty(); }

  void Push(Timer& timer);
  // When the first is due; there must be one.
  Nanos first_due() const { return timers_.back()->due; }
  void Remove(Timer& timer) noexcept;
  // Resumes the timers that are due at `now`, each at most once: a coroutine may pause for no time again and
  // again. False: none was due.
  bool ResumeDue(Nanos now);

 private:
  // The first that is due at `now`; null if none is. Of two that are due at the same time, the older.
  Timer* PopDue(Nanos now);

  std::vector<Timer*> timers_;  // the first due stands last
};

}  // namespace farside::fabric
