#include "base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace farside {
namespace {

Descriptor OpenNull() {
  return Descriptor::From([] { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); });
}
bool IsOpen(int number) { return ::fcntl(number, F_GETFD) >= 0; }
// Of the lowest, which are given first.
std::vector<int> OpenNumbers() {
  std::vector<int> open;
  for (int number = 0; number < 256; ++number) {
    if (IsOpen(number)) open.push_back(number);
  }
  return open;
}

// Whether `body` is true in a child.
bool InChild(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 7 : 1);
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

TEST(Descriptor, IsClosedByItsOwner) {
  int number = -1;
  {
    const Descriptor owner = OpenNull();
    number = owner.get();
    ASSERT_TRUE(owner.open());
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
  EXPECT_FALSE(Descriptor().open());
  EXPECT_FALSE(Descriptor(-1).open());
}

TEST(Descriptor, IsNotInheritedByAChild) {
  // Given descriptors that were moved, exchanged and closed. When the process forks. Expect that the child
  // has none of them, that their owners know it, and that what the child opens is not closed by them.
  Descriptor first = OpenNull();
  Descriptor second = OpenNull();
  Descriptor closed = OpenNull();
  closed.Close();
  const int number = first.get();
  std::vector<Descriptor> moved;
  moved.push_back(std::move(first));
  moved.push_back(std::move(second));
  std::swap(moved[0], moved[1]);
  EXPECT_EQ(moved[1].get(), number);
  EXPECT_TRUE(InChild([&] {
    const bool gone = !IsOpen(number) && !moved[0].open() && !moved[1].open();
    const Descriptor own = OpenNull();  // the lowest number that is free: one of theirs
    moved.clear();
    return gone && IsOpen(own.get());
  }));
  EXPECT_TRUE(IsOpen(number));
}

TEST(Descriptor, ThatIsKept_IsInherited) {
  const Descriptor kept(::open("/dev/null", O_RDONLY | O_CLOEXEC), Descriptor::InChild::kKept);
  EXPECT_TRUE(InChild([&] { return kept.open() && IsOpen(kept.get()); }));
}

TEST(Descriptor, OfOtherThreads_IsNotInheritedEither) {
  // Given a thread that opens and closes descriptors all the time. When the process forks. Expect that no
  // child has more than what was there before.
  const std::vector<int> before = OpenNumbers();
  const Descriptor own = OpenNull();
  std::atomic<bool> stop{false};
  std::thread other([&stop] {
    while (!stop.load()) {
      Descriptor made = OpenNull();
      const Descriptor moved = std::move(made);
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(InChild([&] { return OpenNumbers() == before; })) << i;
  }
  stop = true;
  other.join();
}

}  // namespace
}  // namespace farside
