// What happens next in the timed fabric: events by virtual time.
//
//   wheel   one list per nanosecond, for the next 8 us, where nearly all events of a network fall:
//           adding and taking are a few instructions
//   later   a heap of what is further away, such as timers; moved to the wheel when its time comes near
//
// Events of one nanosecond happen in the order in which they were put on the wheel. So the order depends on
// nothing but the calls, and a run can be repeated.
//
// INVARIANT timed/1: everything on the wheel is due before `tick_` + kSlots, everything in `later_` is not.
// So the wheel holds the earliest event, unless it is empty.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/sim/timed/server.h"

namespace farside::fabric::sim {

enum class Happening : uint8_t {
  kPosted,       // of a timed trip: its client has posted it
  kAtNode,       // of a leg: its request has come to the node
  kTakesEffect,  // of a leg: the node's card executes its verbs
  kFlushed,      // of a leg: its handler has made durable what it has to
  kAnswered,     // of a leg: the answer has come to the client's card
  kReaped,       // of a timed trip: the client finds the completion
  kTimer,
};

struct TimedEvent {
  TimedEvent* next = nullptr;  // on the wheel
  Picos at = 0;
  Happening what = Happening::kTimer;
};

class Agenda {
 public:
  // It must stay where it is until it has been taken. One whose time has passed happens next.
  void Add(TimedEvent& event);
  // The earliest; null if there is none.
  TimedEvent* Take();

 private:
  static constexpr int64_t kSlots = 8192;  // nanoseconds
  static constexpr size_t kMapWords = kSlots / 64;

  struct Slot {
    TimedEvent* first = nullptr;
    TimedEvent* last = nullptr;
  };
  struct Later {
    int64_t tick;
    uint64_t sequence;  // breaks ties
    TimedEvent* event;
    // For a heap whose top is the earliest.
    friend bool operator<(const Later& a, const Later& b) {
      return a.tick != b.tick ? a.tick > b.tick : a.sequence > b.sequence;
    }
  };

  void PutOnWheel(TimedEvent& event, int64_t tick);
  int64_t FirstTickOnWheel() const;
  void AdvanceTo(int64_t tick);

  int64_t tick_ = 0;  // no event is due before
  size_t on_wheel_ = 0;
  std::array<Slot, kSlots> wheel_{};
  // Bit i: the i-th list is not empty; and which words of that are not 0.
  std::array<uint64_t, kMapWords> map_{};
  std::array<uint64_t, kMapWords / 64> map_of_map_{};

  std::vector<Later> later_;
  uint64_t sequence_ = 0;
};

}  // namespace farside::fabric::sim
