// Whether the kernel can forbid to truncate a file by its descriptor: Linux 6.2, unless it was built or
// started without Landlock, or a container forbids that.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace farside {

inline bool KernelForbidsTruncation() {
  constexpr long kCreateRuleset = 444;
  constexpr unsigned kAskForVersion = 1;
  constexpr long kVersionThatDoes = 3;
  return ::syscall(kCreateRuleset, nullptr, 0, kAskForVersion) >= kVersionThatDoes;
}

}  // namespace farside
