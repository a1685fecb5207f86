#include "bench/peers/interrupt.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace farside::peers {

Result<Interrupt> Interrupt::Watch() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  const int made = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  sigset_t before;
  if (made < 0 || ::pthread_sigmask(SIG_BLOCK, &signals, &before) != 0) {
    return Error(ErrorCode::kUnavailable, std::string("cannot watch for signals: ") + std::strerror(errno));
  }
  return Interrupt(made, before);
}

Interrupt::~Interrupt() {
  if (signals_ < 0) return;
  // The program has noticed that it is asked to end: what is pending must not strike now, while everything is
  // put in order.
  if (came_) {
    signalfd_siginfo ignored;
    while (::read(signals_, &ignored, sizeof ignored) > 0) {
    }
  }
  ::close(signals_);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Status Interrupt::WaitFor(Nanos time) {
  const SteadyClock clock;
  const Nanos deadline = clock.Now() + time;
  while (!came_) {  // looks once in any case
    const Nanos left = std::max(deadline - clock.Now(), Nanos{0});
    const timespec timeout{.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000),
                           .tv_nsec = static_cast<long>(left.count() % 1'000'000'000)};
    pollfd watched{.fd = signals_, .events = POLLIN, .revents = 0};
    came_ = ::ppoll(&watched, 1, &timeout, nullptr) > 0;
    if (!came_ && left == Nanos{0}) return OkStatus();
  }
  return Error(ErrorCode::kUnavailable, "interrupted");
}

}  // namespace farside::peers
