// A fork of this process, whatever threads it has, and what its child says about the handles it inherited.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "farside/result.h"

namespace farside::processes {

// How a child ends.
enum class Ending {
  kAtOnce,  // by _exit
  kReturn,  // as when main returns: with destructors of static objects, and functions of atexit
};

// A child that takes longer hangs.
inline constexpr unsigned kPatience = 240;

// Runs `body` in a fork of this process. A child that hangs is ended by a signal, after far more time than it
// needs.
template <class Body>
pid_t Fork(Ending ending, Body body) {
  std::fflush(nullptr);  // otherwise the child prints it too
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::alarm(kPatience);
  const int code = body() ? 0 : 1;
  if (ending == Ending::kAtOnce) ::_exit(code);
  std::exit(code);
}

// The exit code, or minus the signal that ended it.
inline int AwaitEndOf(pid_t pid) {
  int raw = 0;
  while (::waitpid(pid, &raw, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(raw) ? WEXITSTATUS(raw) : -WTERMSIG(raw);
}

// Whether a call on an inherited handle was refused because of the fork.
template <class T>
bool IsRefused(const char* call, const Result<T>& result) {
  const bool refused = !result.ok() && result.error().code() == ErrorCode::kInvalidArgument &&
                       result.error().message().find("fork") != std::string::npos;
  if (!refused) {
    std::fprintf(stderr, "in the child, %s: %s\n", call,
                 result.ok() ? "it was done" : result.error().ToString().c_str());
  }
  return refused;
}

// Whether a call of the child on something of its own has succeeded.
template <class T>
bool IsDone(const char* call, const Result<T>& result) {
  if (!result.ok()) std::fprintf(stderr, "in the child, %s: %s\n", call, result.error().ToString().c_str());
  return result.ok();
}

}  // namespace farside::processes
