#include "tools/serve/bus_error.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "base/bytes.h"
#include "tools/common/exit_code.h"

namespace farside::tools {
namespace {

// A signal handler reaches only globals. Written before the handler is installed, and never again.
struct ServedFile {
  uintptr_t begin = 0;  // where it is mapped
  uintptr_t end = 0;
  int descriptor = -1;
  std::string cut_short_message;
  std::string unreadable_message;
};
const ServedFile* served_file = nullptr;

// Calls only functions that a signal handler may call.
void OnBusError(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (address < served_file->begin || address >= served_file->end) {
    ::signal(signal, SIG_DFL);  // the access fails again when this returns
    return;
  }
  struct stat status {};
  const bool cut_short = ::fstat(served_file->descriptor, &status) == 0 &&
                         static_cast<uint64_t>(status.st_size) < served_file->end - served_file->begin;
  const std::string_view message =
      cut_short ? served_file->cut_short_message : served_file->unreadable_message;
  // A reader of the log that has stopped must not keep the node from ending.
  pollfd log{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&log, 1, 0) == 1) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  }
  ::_exit(kCouldNotRun);
}

}  // namespace

void ExplainBusErrors(std::span<const std::byte> region, int descriptor, const std::string& path) {
  const auto begin = reinterpret_cast<uintptr_t>(region.data());
  served_file = new ServedFile{
      .begin = begin,
      .end = begin + region.size(),
      .descriptor = descriptor,
      .cut_short_message =
          fmt::format("farside serve: {} was cut short by another process while it was served, so "
                      "what it held is lost; restore it from a backup\n",
                      Escape(path)),
      .unreadable_message =
          fmt::format("farside serve: the system cannot read or write {} any more; its log (dmesg) "
                      "says why\n",
                      Escape(path))};
  struct sigaction action {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace farside::tools
