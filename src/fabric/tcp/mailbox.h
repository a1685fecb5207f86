// Letters from any thread to a thread that serves connections, about one of them.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/descriptor.h"

namespace farside::fabric::tcp {

class Connection;

enum class LetterKind : uint8_t {
  kArrived,    // it belongs to the thread from now on
  kCutOff,     // it was fenced
  kFenceDone,  // the fence that it asked for has completed
  kMakeRoom,   // it has to go, if it is still a stranger
  kStop,       // end; about no connection
};
struct Letter {
  LetterKind kind;
  std::shared_ptr<Connection> connection;
};

// Its writers keep it, so it may outlive its thread.
class Mailbox {
 public:
  Mailbox() : bell_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  // Can be read when there are letters; invalid if there are no descriptors left.
  int bell() const { return bell_.get(); }

  // Safe from any thread. False: the thread has ended, and the letter is lost.
  //
  // The bell is rung without the lock. To ring it wakes the thread, and on a busy machine the kernel may then
  // leave the writer, which may be of lower priority, for a long while.
  bool Send(Letter letter) {
    {
      const std::scoped_lock lock(mutex_);
      if (closed_) return false;
      letters_.push_back(std::move(letter));
      if (letters_.size() != 1) return true;  // the writer of the first one rings
    }
    Ring();
    return true;
  }
  // By the thread. All that came, in the order in which it came; none, if the bell was rung for letters that
  // it has taken before.
  void TakeAll(std::vector<Letter>& into) {
    into.clear();
    const std::scoped_lock lock(mutex_);
    std::swap(into, letters_);
    uint64_t rings = 0;
    if (read(bell_.get(), &rings, sizeof(rings)) < 0) return;  // the writer is about to ring
  }
  // By the thread, at its end. Returns the letters that it has not read.
  std::vector<Letter> Close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    return std::exchange(letters_, {});
  }

 private:
  void Ring() {
    const uint64_t once = 1;
    if (write(bell_.get(), &once, sizeof(once)) < 0) return;  // it has been rung often enough
  }

  const Descriptor bell_;
  std::mutex mutex_;
  std::vector<Letter> letters_;
  bool closed_ = false;
};

}  // namespace farside::fabric::tcp
