// A flag that is true, and a counter that is larger by one, until the end of the scope, also if an error ends
// the coroutine or it is destroyed.
#pragma once

#include <cstddef>

namespace farside::pool {

class ScopedFlag {
 public:
  explicit ScopedFlag(bool& flag) : flag_(flag) { flag_ = true; }
  ScopedFlag(const ScopedFlag&) = delete;
  ScopedFlag& operator=(const ScopedFlag&) = delete;
  ~ScopedFlag() { flag_ = false; }

 private:
  bool& flag_;
};

class ScopedCount {
 public:
  explicit ScopedCount(size_t& count) : count_(count) { ++count_; }
  ScopedCount(const ScopedCount&) = delete;
  ScopedCount& operator=(const ScopedCount&) = delete;
  ~ScopedCount() { --count_; }

 private:
  size_t& count_;
};

}  // namespace farside::pool
