#include "tools/common/machine.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include <sched.h>
#include <sys/resource.h>

#include "fabric/memory/page_gatherer.h"

namespace farside::tools {
namespace {

constexpr uint64_t kKiB = 1024;

std::optional<std::string> ReadText(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return std::nullopt;
  return text.str();
}

// The number that the text begins with, after spaces.
std::optional<uint64_t> LeadingNumber(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || end == text.data()) return std::nullopt;
  return number;
}

// The number in the line "name:   123 kB" of /proc/meminfo.
std::optional<uint64_t> MeminfoNumber(std::string_view meminfo, const std::string& name) {
  const size_t at = ("\n" + std::string(meminfo)).find("\n" + name + ":");
  if (at == std::string::npos) return std::nullopt;
  return LeadingNumber(meminfo.substr(at + name.size() + 1));
}

std::optional<uint64_t> MeminfoBytes(std::string_view meminfo, const std::string& name) {
  const std::optional<uint64_t> kibibytes = MeminfoNumber(meminfo, name);
  if (!kibibytes.has_value()) return std::nullopt;
  return *kibibytes * kKiB;
}

// The chosen word of "always [madvise] never".
std::optional<std::string> ChosenWord(const std::optional<std::string>& text) {
  if (!text.has_value()) return std::nullopt;
  const size_t open = text->find('[');
  const size_t close = text->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  return text->substr(open + 1, close - open - 1);
}

unsigned CountCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

std::optional<uint64_t> GroupLimit() {
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::optional<std::string> text = ReadText(path);
    if (!text.has_value()) continue;
    if (const std::optional<uint64_t> limit = LeadingNumber(*text)) return limit;  // else it says "max"
  }
  return std::nullopt;
}

std::optional<uint64_t> MemlockLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return std::nullopt;
  return limit.rlim_cur == RLIM_INFINITY ? kUnlimited : limit.rlim_cur;
}

std::vector<std::string> RdmaDevices() {
  std::vector<std::string> names;
  std::error_code failure;
  std::filesystem::directory_iterator devices("/sys/class/infiniband", failure);
  for (; !failure && devices != std::filesystem::directory_iterator(); devices.increment(failure)) {
    names.push_back(devices->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Machine ReadMachine() {
  const std::string meminfo = ReadText("/proc/meminfo").value_or("");
  Machine machine;
  machine.cores = CountCores();
  machine.memory_bytes = MeminfoBytes(meminfo, "MemTotal");
  machine.available_bytes = MeminfoBytes(meminfo, "MemAvailable");
  machine.group_limit_bytes = GroupLimit();
  machine.transparent_huge_pages = ChosenWord(ReadText("/sys/kernel/mm/transparent_hugepage/enabled"));
  machine.huge_pages = MeminfoNumber(meminfo, "HugePages_Total");
  machine.free_huge_pages = MeminfoNumber(meminfo, "HugePages_Free");
  machine.huge_page_bytes = MeminfoBytes(meminfo, "Hugepagesize");
  machine.gathers_huge_pages = fabric::memory::PageGatherer::KernelCan();
  machine.memlock_bytes = MemlockLimit();
  machine.rdma_devices = RdmaDevices();
  return machine;
}

}  // namespace farside::tools
