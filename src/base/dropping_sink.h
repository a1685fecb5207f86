// A sink for the log of a daemon. It never waits for the reader of the log: a line for which there is no
// room is dropped and counted. Before the next line that fits, the sink writes how many were dropped:
//
//   warn: 17 lines of this log were dropped, as it was not read fast enough
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/log.h"

namespace farside {

// By one thread at a time, as a logger calls its sink.
class DroppingSink {
 public:
  // Writes to `fd`, which stays open for as long as this lives. Lines of its own have the time of the clock.
  explicit DroppingSink(int fd, LogClock clock = nullptr);
  DroppingSink(const DroppingSink&) = delete;
  DroppingSink& operator=(const DroppingSink&) = delete;

  void Write(std::string_view line);
  uint64_t dropped() const { return dropped_; }

 private:
  // False: there is no room for it.
  bool Put(std::string_view line);
  // The bytes that were written without waiting; 0 if none.
  size_t WriteSome(std::string_view bytes) const;

  const int fd_;
  const LogClock clock_;
  bool is_socket_ = false;
  Descriptor reopened_;     // the same pipe or terminal, opened again with O_NONBLOCK, if the kernel does so
  std::string unfinished_;  // the rest of a line of which the first part was written
  uint64_t dropped_ = 0;
  uint64_t unreported_ = 0;  // of the dropped lines
};

}  // namespace farside
