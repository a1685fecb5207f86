// Something that happens in the simulated world at some virtual time: a flight that moves on, or a
// timer that fires.
#pragma once

#include <coroutine>
#include <cstdint>

#include "base/clock.h"
#include "fabric/client.h"

namespace farside::fabric::sim {

enum class EventKind : uint8_t { kFlight, kTimer };

struct Event {
  explicit Event(EventKind event_kind) : kind(event_kind) {}
  const EventKind kind;
  Nanos due{};
  uint64_t sequence = 0;  // breaks ties of `due`, so that the order is the same in every run
};

class SimClient;

struct TimerEvent : Event {
  TimerEvent() : Event(EventKind::kTimer) {}
  SimClient* client = nullptr;
  Timer* timer = nullptr;  // null: the waiter is gone
};

// For a heap whose top is the earliest.
struct LaterFirst {
  bool operator()(const Event* a, const Event* b) const {
    return a->due != b->due ? a->due > b->due : a->sequence > b->sequence;
  }
};

}  // namespace farside::fabric::sim
