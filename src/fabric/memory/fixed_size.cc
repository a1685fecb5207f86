#include "fabric/memory/fixed_size.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <thread>

namespace farside::fabric::memory {
namespace {

// Of linux/landlock.h, which older systems do not have.
constexpr long kCreateRuleset = 444;
constexpr long kRestrictSelf = 446;
struct RulesetAttributes {
  uint64_t handled_access_fs;
};
constexpr uint64_t kTruncate = uint64_t{1} << 14;

// Takes the right to truncate from the calling thread, for good. If the kernel cannot, the thread keeps it.
void GiveUpTruncating() {
  const RulesetAttributes attributes{.handled_access_fs = kTruncate};
  const auto ruleset = static_cast<int>(::syscall(kCreateRuleset, &attributes, sizeof attributes, 0));
  if (ruleset < 0) return;
  // The kernel asks for this first; like the rule, it is for this thread alone.
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) static_cast<void>(::syscall(kRestrictSelf, ruleset, 0));
  ::close(ruleset);
}

}  // namespace

// On a thread of its own, which ends with its rule.
int OpenAtFixedSize(const std::string& path, int flags) {
  int descriptor = -1;
  int error = 0;
  std::thread([&] {
    GiveUpTruncating();
    descriptor = ::open(path.c_str(), flags);
    error = errno;
  }).join();
  errno = error;
  return descriptor;
}

// To ask for the size that it has changes nothing.
bool HasFixedSize(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && ::ftruncate(descriptor, status.st_size) != 0;
}

}  // namespace farside::fabric::memory
