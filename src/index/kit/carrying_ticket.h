// A ticket that may take others of its key along: its passengers, which wait in the queue behind it and get
// their answer from it.
//
//   class MyTicket : public CarryingTicket<MyTicket> { ... };
#pragma once

#include <cstddef>

#include "index/kit/key_queue.h"

namespace farside::index {

template <class Derived>
class CarryingTicket : public Ticket {
 public:
  using Ticket::Ticket;
  ~CarryingTicket() { Release(); }

  bool has_passengers() const { return passengers_ > 0; }
  // The passengers wait for their own turns again.
  void Release() {
    ForEachPassenger([](Derived&) {});
  }

 protected:
  Derived* NextOfKey() const { return static_cast<Derived*>(Next()); }
  void TakeAlong(Derived& other) {
    other.carrier_ = this;
    ++passengers_;
  }
  // They are passengers no longer.
  template <class Do>
  void ForEachPassenger(Do act) {
    if (passengers_ == 0) return;
    for (Derived* other = NextOfKey(); other != nullptr; other = other->NextOfKey()) {
      if (other->carrier_ != this) continue;
      other->carrier_ = nullptr;
      act(*other);
    }
    passengers_ = 0;
  }

 private:
  size_t passengers_ = 0;
  const CarryingTicket* carrier_ = nullptr;  // of this one
};

}  // namespace farside::index
