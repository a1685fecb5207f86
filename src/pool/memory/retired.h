// The blocks that a client has unlinked and not given back yet, oldest first.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "pool/memory/carving.h"

namespace farside::pool {

// A queue in one piece of memory that only grows: no heap in a steady state. Elements keep their number.
template <class T>
class NumberedQueue {
 public:
  bool empty() const { return first_ == end_; }
  uint64_t size() const { return end_ - first_; }
  uint64_t first() const { return first_; }  // number of the oldest element
  uint64_t end() const { return end_; }      // number that the next one will have

  T& operator[](uint64_t number) { return ring_[Slot(number)]; }
  const T& operator[](uint64_t number) const { return ring_[Slot(number)]; }
  T& back() { return (*this)[end_ - 1]; }

  void PushBack(const T& element) {
    if (size() == ring_.size()) Grow();
    ring_[end_++ & (ring_.size() - 1)] = element;
  }
  void PopFront() {
    assert(!empty());
    ++first_;
  }
  void PopBack() {
    assert(!empty());
    --end_;
  }

 private:
  size_t Slot(uint64_t number) const {
    assert(number >= first_ && number < end_);
    return number & (ring_.size() - 1);
  }
  void Grow() {
    std::vector<T> larger(ring_.empty() ? 64 : ring_.size() * 2);  // a power of two
    for (uint64_t number = first_; number != end_; ++number)
      larger[number & (larger.size() - 1)] = (*this)[number];
    ring_.swap(larger);
  }

  std::vector<T> ring_;
  uint64_t first_ = 0;
  uint64_t end_ = 0;
};

struct Retired {
  // Until a sync has read an epoch, nothing is larger.
  static constexpr uint64_t kUnstamped = std::numeric_limits<uint64_t>::max();

  bool MayGiveBack(uint64_t safe_epoch) const { return never_seen || stamp < safe_epoch; }

  BlockPosition position;
  bool never_seen = false;  // by another client, or not any more: none has to move on first
  bool done = false;        // given back, and waiting only for those before it to leave the queue
  uint64_t birth = 0;
  uint64_t stamp = kUnstamped;
};

class RetiredQueue {
 public:
  bool empty() const { return items_.empty(); }
  uint64_t size() const { return items_.size(); }
  uint64_t first() const { return items_.first(); }
  uint64_t end() const { return items_.end(); }
  // Behind the last one that was never seen by another client.
  uint64_t end_of_never_seen() const { return end_of_never_seen_; }
  Retired& operator[](uint64_t number) { return items_[number]; }
  const Retired& operator[](uint64_t number) const { return items_[number]; }

  void Push(const Retired& item);
  // Stamps what is not stamped yet, up to `end`.
  void Stamp(uint64_t end, uint64_t epoch);
  // Drops what is done from the front.
  void PopDone();

  // The smallest birth; the largest number if there is none.
  uint64_t OldestBirth() const {
    return minima_.empty() ? std::numeric_limits<uint64_t>::max() : minima_[minima_.first()].birth;
  }

 private:
  // An item whose birth is smaller than that of all behind it.
  struct Minimum {
    uint64_t number = 0;
    uint64_t birth = 0;
  };

  NumberedQueue<Retired> items_;
  NumberedQueue<Minimum> minima_;  // births rise; the first is the smallest of all
  uint64_t unstamped_ = 0;         // all before this number are stamped
  uint64_t end_of_never_seen_ = 0;
};

}  // namespace farside::pool
