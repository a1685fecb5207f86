#include "base/dropping_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

namespace farside {

DroppingSink::DroppingSink(int fd, LogClock clock) : fd_(fd), clock_(std::move(clock)) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return;
  // Opened again, because the mode of `fd` is shared with other processes, which expect it to block.
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  reopened_ = Descriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
                         Descriptor::InChild::kKept);
}

void DroppingSink::Write(std::string_view line) {
  if (unreported_ != 0 &&
      Put(HeadOfLine(LogLevel::kWarn, clock_) +
          fmt::format("{} lines of this log were dropped, as it was not read fast enough\n", unreported_)))
    unreported_ = 0;
  if (unreported_ == 0 && Put(line)) return;
  ++dropped_;
  ++unreported_;
}

bool DroppingSink::Put(std::string_view line) {
  // The rest of a line comes before the next one.
  if (!unfinished_.empty()) unfinished_.erase(0, WriteSome(unfinished_));
  if (!unfinished_.empty()) return false;
  const size_t written = WriteSome(line);
  if (written == 0) return false;
  unfinished_ = line.substr(written);
  return true;
}

size_t DroppingSink::WriteSome(std::string_view bytes) const {
  while (true) {
    ssize_t written = 0;
    if (is_socket_) {
      written = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    } else if (reopened_.open()) {
      written = ::write(reopened_.get(), bytes.data(), bytes.size());
    } else {
      // A pipe that can be written has room for PIPE_BUF bytes, as many as the longest line.
      pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
      if (::poll(&ready, 1, 0) <= 0) return 0;
      written = ::write(fd_, bytes.data(), bytes.size());
    }
    if (written >= 0) return static_cast<size_t>(written);
    if (errno != EINTR) return 0;
  }
}

}  // namespace farside
