#include "fabric/memory/mapping.h"

#include <cerrno>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <sys/mman.h>

namespace farside::fabric::memory {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

}  // namespace

Result<Mapping> Mapping::Create(uint64_t bytes) {
  // The kernel rounds up to whole pages, and must not wrap around while it does.
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max() / 2;
  void* address = MAP_FAILED;
  errno = ENOMEM;
  if (bytes <= kMost) {
    address =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (address == MAP_FAILED) {
    return Error(ErrorCode::kOutOfMemory,
                 fmt::format("cannot map {} bytes of memory ({}); choose a smaller region", bytes,
                             std::strerror(errno)));
  }
  if (bytes >= 2 * kHugePageBytes) {
    static_cast<void>(::madvise(address, bytes, MADV_HUGEPAGE));  // only advice: small pages work too
  }
  return Mapping({static_cast<std::byte*>(address), bytes});
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace farside::fabric::memory
