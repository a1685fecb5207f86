// A queue in a ring that grows when it is full and keeps its memory.
//
//   slots   | .. | oldest | ... | newest | .. |
//                  ^ head_               ^ tail_      counted on for ever; the slot is the count mod the size
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace farside::fabric::tcp {

template <class T>
class Ring {
 public:
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }

  void Push(const T& value) {
    if (size() == slots_.size()) Grow();
    Slot(tail_++) = value;
  }
  T Pop() {
    assert(!empty());
    return Slot(head_++);
  }
  const T& newest() {
    assert(!empty());
    return Slot(tail_ - 1);
  }
  T PopNewest() {
    assert(!empty());
    return Slot(--tail_);
  }

 private:
  static constexpr size_t kFirstSlots = 64;

  T& Slot(uint64_t count) { return slots_[count & (slots_.size() - 1)]; }
  void Grow() {
    std::vector<T> larger(slots_.size() * 2);
    for (uint64_t count = head_; count != tail_; ++count) larger[count & (larger.size() - 1)] = Slot(count);
    slots_ = std::move(larger);
  }

  std::vector<T> slots_ = std::vector<T>(kFirstSlots);  // a power of two
  uint64_t head_ = 0;
  uint64_t tail_ = 0;
};

}  // namespace farside::fabric::tcp
