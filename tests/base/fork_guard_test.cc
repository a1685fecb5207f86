#include "base/fork_guard.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <functional>

namespace farside {
namespace {

int EndOf(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The exit code of a child that runs `body`.
int InChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  return EndOf(child);
}

TEST(ForkGuard, TellsParentAndChildApart) {
  // Given a guard. When the process forks. Expect that only the child, and its children, are told so.
  const ForkGuard guard;
  EXPECT_FALSE(guard.forked());
  EXPECT_EQ(InChild([&] { return guard.forked() ? InChild([&] { return guard.forked() ? 7 : 1; }) : 2; }), 7);
  EXPECT_FALSE(guard.forked());
}

TEST(ForkGuard, OfAChild_IsNotThatOfItsParent) {
  // Given a guard. When a child makes one of its own, and forks. Expect that each belongs to its process.
  const ForkGuard guard;
  const int code = InChild([&] {
    const ForkGuard own;
    if (own.forked() || !guard.forked()) return 1;
    return InChild([&] {
      const ForkGuard last;
      return own.forked() && guard.forked() && !last.forked() ? 7 : 2;
    });
  });
  EXPECT_EQ(code, 7);
  EXPECT_FALSE(ForkGuard().forked());
}

TEST(ForkGuard, NoticesAForkPastTheLibrary) {
  // When a child is made by the system call itself, so that no handler runs. Expect that the kernel tells it.
  const ForkGuard guard;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) ::_exit(guard.forked() ? 7 : 1);
  EXPECT_EQ(EndOf(child), 7);
}

}  // namespace
}  // namespace farside
