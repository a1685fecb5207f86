// The memory that the connections of a server take for requests and answers.
//
// Each connection may have kOwnBuffer for requests and as much for answers in any case, so that small
// requests are always served. Larger buffers count for the budget of the server:
//
//   buffers/1  the buffers that are larger than kOwnBuffer take at most `most` bytes, all together
//   buffers/2  those of one connection take no more than what is left of `most` for the others
#pragma once

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <string>

namespace farside::fabric::tcp {

// Of a server. Safe from any thread.
class BufferBudget {
 public:
  explicit BufferBudget(size_t most) : most_(most) {}

  size_t in_use() const { return in_use_.load(); }
  bool IsScarce() const { return in_use() > most_ / 2; }
  // Why a claim was refused, for the client.
  std::string Refusal() const;

 private:
  friend class BufferShare;

  const size_t most_;
  std::atomic<size_t> in_use_{0};
};

// What one connection has of the budget. Used by the thread of the connection alone.
class BufferShare {
 public:
  static constexpr size_t kOwnBuffer = size_t{128} << 10;

  explicit BufferShare(BufferBudget& budget) : budget_(budget) {}

  // Whether the connection may allocate a buffer of so many bytes (buffers/1, buffers/2). If so, they count
  // at once; Update tells later what became of them.
  bool Claim(size_t bytes);
  // The sizes of all buffers that the connection has now.
  void Update(std::initializer_list<size_t> buffers);
  // Bytes.
  size_t counted() const { return counted_; }
  // Whether the connection has memory that others need.
  bool HoldsWhatIsScarce() const { return counted_ != 0 && budget_.IsScarce(); }

 private:
  BufferBudget& budget_;
  size_t counted_ = 0;  // of BufferBudget::in_use_
};

}  // namespace farside::fabric::tcp
