#include "tools/common/stop_request.h"

#include <signal.h>

#include <array>
#include <atomic>

namespace farside::tools {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM};

// A signal handler reaches only globals.
std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Calls only functions that a signal handler may call.
void OnStopSignal(int /*signal*/) {
  stop_requested.store(true, std::memory_order_relaxed);
  for (const int signal : kStopSignals) ::signal(signal, SIG_DFL);
}

}  // namespace

void NoteStopRequests() {
  for (const int signal : kStopSignals) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = OnStopSignal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

bool StopRequested() { return stop_requested.load(std::memory_order_relaxed); }

}  // namespace farside::tools
