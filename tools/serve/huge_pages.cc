#include "tools/serve/huge_pages.h"

#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>

#include "base/size.h"
#include "fabric/memory/region.h"

namespace farside::tools {
namespace {

using fabric::memory::kHugePageBytes;

constexpr auto kProgressPause = std::chrono::seconds(2);
constexpr uint64_t kMiB = uint64_t{1} << 20;

// In whole MiB.
std::string About(uint64_t bytes) { return FormatSize(bytes / kMiB * kMiB); }

uint64_t PagesOf(uint64_t bytes) { return bytes / kHugePageBytes + (bytes % kHugePageBytes != 0 ? 1 : 0); }

}  // namespace

Status CheckHugePages(uint64_t bytes, const Machine& machine) {
  const uint64_t page = machine.huge_page_bytes.value_or(kHugePageBytes);
  const uint64_t reserved = machine.free_huge_pages.value_or(0);
  if (page == kHugePageBytes && bytes % page == 0 && bytes / page <= reserved) return OkStatus();
  if (!machine.available_bytes.has_value()) return OkStatus();
  const uint64_t available =
      std::min(*machine.available_bytes, machine.group_limit_bytes.value_or(kUnlimited));
  if (bytes <= available) return OkStatus();
  return Error(
      ErrorCode::kOutOfMemory,
      fmt::format("--hugepages on: {} take {} huge pages of {}, of which {} are reserved and free, and {} of "
                  "other memory is available; choose a smaller --size, reserve more with 'sysctl "
                  "vm.nr_hugepages={}', or use --hugepages auto",
                  FormatSize(bytes), PagesOf(bytes), FormatSize(page), reserved, About(available),
                  PagesOf(bytes)));
}

Status MakeHugePages(const fabric::shm::SharedMemory& memory, Logger& log,
                     const std::function<bool()>& stop_requested) {
  const uint64_t bytes = memory.region().size();
  bool stopped = false;
  auto next_line = std::chrono::steady_clock::now() + kProgressPause;
  const bool all = memory.UseHugePages([&](uint64_t done) {
    stopped = stop_requested();
    if (const auto now = std::chrono::steady_clock::now(); now >= next_line) {
      log.Info("has put {} of {} into huge pages", About(done), FormatSize(bytes));
      next_line = now + kProgressPause;
    }
    return !stopped;
  });
  if (stopped) return Error(ErrorCode::kUnavailable, "stopped before all huge pages were made");
  if (all) return OkStatus();
  return Error(ErrorCode::kOutOfMemory,
               fmt::format("--hugepages on: neither are there enough that are reserved (reserve them with "
                           "'sysctl vm.nr_hugepages={}'), nor can the kernel make them; use --hugepages auto",
                           PagesOf(bytes)));
}

}  // namespace farside::tools
