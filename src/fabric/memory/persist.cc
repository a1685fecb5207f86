#include "fabric/memory/persist.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace farside::fabric::memory {

Status PersistMapped(std::span<std::byte> region, int file, uint64_t offset, uint64_t size) {
  assert(offset <= region.size() && size <= region.size() - offset);
  // The kernel has nothing against pages that are not there any more.
  struct stat status {};
  if (::fstat(file, &status) == 0 && static_cast<uint64_t>(status.st_size) < region.size()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("a mapped file was cut short by another process, to {} of {} bytes; restore it "
                             "from a backup",
                             status.st_size, region.size()));
  }
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t first = offset - offset % page;
  if (::msync(region.data() + first, offset + size - first, MS_SYNC) == 0) return OkStatus();
  return Error(ErrorCode::kUnavailable, fmt::format("the kernel cannot persist a mapped file: {}",
                                                    std::generic_category().message(errno)));
}

}  // namespace farside::fabric::memory
