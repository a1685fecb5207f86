#include "fabric/sim/timed/agenda.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace farside::fabric::sim {

void Agenda::Add(TimedEvent& event) {
  const int64_t tick = std::max(event.at / kPicosPerNano, tick_);
  if (tick < tick_ + kSlots) return PutOnWheel(event, tick);
  later_.push_back({tick, ++sequence_, &event});
  std::push_heap(later_.begin(), later_.end());
}

TimedEvent* Agenda::Take() {
  if (on_wheel_ == 0) {
    if (later_.empty()) return nullptr;
    AdvanceTo(later_.front().tick);
  }
  const int64_t tick = FirstTickOnWheel();
  if (tick != tick_) AdvanceTo(tick);

  const auto slot = static_cast<size_t>(tick % kSlots);
  TimedEvent* const event = wheel_[slot].first;
  wheel_[slot].first = event->next;
  event->next = nullptr;
  --on_wheel_;
  if (wheel_[slot].first == nullptr) {
    uint64_t& word = map_[slot / 64];
    word &= ~(uint64_t{1} << slot % 64);
    if (word == 0) map_of_map_[slot / 4096] &= ~(uint64_t{1} << slot / 64 % 64);
  }
  return event;
}

void Agenda::PutOnWheel(TimedEvent& event, int64_t tick) {
  const auto index = static_cast<size_t>(tick % kSlots);
  Slot& slot = wheel_[index];
  event.next = nullptr;
  if (slot.first == nullptr) {
    slot.first = &event;
    map_[index / 64] |= uint64_t{1} << index % 64;
    map_of_map_[index / 4096] |= uint64_t{1} << index / 64 % 64;
  } else {
    slot.last->next = &event;
  }
  slot.last = &event;
  ++on_wheel_;
}

// The lists are a ring that begins at tick_.
int64_t Agenda::FirstTickOnWheel() const {
  assert(on_wheel_ > 0);
  const auto start = static_cast<size_t>(tick_ % kSlots);
  const auto tick_of = [this, start](size_t slot) {
    const size_t distance = slot >= start ? slot - start : slot + kSlots - start;
    return tick_ + static_cast<int64_t>(distance);
  };
  const size_t start_word = start / 64;
  const uint64_t here = map_[start_word] >> start % 64;
  if (here != 0) return tick_of(start + static_cast<size_t>(std::countr_zero(here)));
  // Words after this one, then from the beginning; the last is this one again, for what lies before the
  // start.
  for (size_t i = 0, word = start_word + 1; i <= map_of_map_.size(); ++i) {
    if (word == kMapWords) word = 0;
    const uint64_t words = map_of_map_[word / 64] >> word % 64;
    if (words != 0) {
      word += static_cast<size_t>(std::countr_zero(words));
      return tick_of(word * 64 + static_cast<size_t>(std::countr_zero(map_[word])));
    }
    word = (word / 64 + 1) * 64;
  }
  assert(false && "the map has lost an event");
  return tick_;
}

// INVARIANT timed/1.
void Agenda::AdvanceTo(int64_t tick) {
  assert(tick >= tick_);
  tick_ = tick;
  while (!later_.empty() && later_.front().tick < tick_ + kSlots) {
    std::pop_heap(later_.begin(), later_.end());
    PutOnWheel(*later_.back().event, later_.back().tick);
    later_.pop_back();
  }
}

}  // namespace farside::fabric::sim
