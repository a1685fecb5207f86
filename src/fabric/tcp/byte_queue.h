// Bytes that come in at one end and leave at the other, in one piece of memory, so that whole frames can be
// looked at and written in place. It keeps its memory, so a steady state allocates nothing, unless that
// became very large.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>

#include "fabric/tcp/growing_memory.h"

namespace farside::fabric::tcp {

class ByteQueue {
 public:
  static constexpr size_t kKept = size_t{1} << 20;

  // `kept`: of memory, by one that is empty.
  explicit ByteQueue(size_t kept = kKept) : kept_(kept) {}

  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }
  std::span<const std::byte> bytes() const { return {memory_.get() + head_, size()}; }

  // Room for `bytes` more at the end. Moves what is there, so pointers into it become invalid.
  std::byte* Reserve(size_t bytes) {
    if (capacity() - tail_ < bytes) MakeRoom(GrowthFor(bytes));
    return memory_.get() + tail_;
  }
  // The same for something that has `total` bytes in the end: memory grows in few steps, as for each of them
  // the old memory and the new count at the same time (buffer_budget.h), and not beyond that.
  std::byte* ReserveOf(size_t total, size_t bytes) {
    if (capacity() - tail_ < bytes) MakeRoom(GrowthOf(total, bytes));
    return memory_.get() + tail_;
  }
  size_t capacity() const { return memory_.bytes(); }
  // The memory that Reserve(bytes) takes before it gives back what there is; 0 if it takes none. One that is
  // empty takes no more than it needs: it has nothing to move, so larger steps would save nothing.
  size_t GrowthFor(size_t bytes) const {
    if (HasRoom(bytes)) return 0;
    return std::max({kFirst, empty() ? 0 : capacity() * 2, size() + bytes});
  }
  // And ReserveOf.
  size_t GrowthOf(size_t total, size_t bytes) const {
    return HasRoom(bytes) ? 0 : std::max({kFirst, std::min(capacity() * 4, total), size() + bytes});
  }
  // How much there is room for without moving anything.
  size_t room() const { return capacity() - tail_; }
  void Commit(size_t bytes) {
    assert(bytes <= room());
    tail_ += bytes;
  }
  // Takes back what was committed last.
  void Uncommit(size_t bytes) {
    assert(bytes <= size());
    tail_ -= bytes;
  }
  void Append(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    std::memcpy(Reserve(bytes.size()), bytes.data(), bytes.size());
    Commit(bytes.size());
  }
  void Consume(size_t bytes) {
    assert(bytes <= size());
    head_ += bytes;
    if (head_ != tail_) return;
    head_ = tail_ = 0;
    if (capacity() > kept_) memory_.Release();
  }
  void Clear() { Consume(size()); }

 private:
  static constexpr size_t kFirst = size_t{16} << 10;

  bool HasRoom(size_t bytes) const {
    // Moving within the memory is only worth it if it makes much room: else small steps would move it all
    // again.
    return bytes <= room() || (size() + bytes <= capacity() && size() <= capacity() / 2);
  }
  // In `larger` bytes of memory; 0: in what there is.
  void MakeRoom(size_t larger) {
    const size_t held = size();
    if (held != 0 && head_ != 0) std::memmove(memory_.get(), memory_.get() + head_, held);
    if (larger > capacity()) memory_.GrowTo(larger);
    head_ = 0;
    tail_ = held;
  }

  size_t kept_;
  GrowingMemory memory_;
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace farside::fabric::tcp
