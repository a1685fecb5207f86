#include "tools/common/descriptor_limit.h"

#include <sys/resource.h>

#include <fmt/format.h>

namespace farside::tools {

Status RaiseDescriptorLimit(uint64_t needed) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return OkStatus();
  if (limit.rlim_cur != limit.rlim_max) {
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  }
  if (limit.rlim_cur >= needed) return OkStatus();
  return Error(
      ErrorCode::kOutOfMemory,
      fmt::format("as many clients as may connect take {} file descriptors, and this process may have {}; "
                  "raise the limit with 'ulimit -Hn' or LimitNOFILE=, or have fewer clients",
                  needed, limit.rlim_cur));
}

}  // namespace farside::tools
