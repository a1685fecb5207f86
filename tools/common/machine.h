// Facts about the machine that this process runs on, as the kernel tells them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace farside::tools {

inline constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// What could not be read is absent.
struct Machine {
  unsigned cores = 1;  // that this process may use
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> available_bytes;
  std::optional<uint64_t> group_limit_bytes;          // of the control group, as containers have one
  std::optional<std::string> transparent_huge_pages;  // "always", "madvise" or "never"
  std::optional<uint64_t> huge_pages;                 // set aside
  std::optional<uint64_t> free_huge_pages;
  std::optional<uint64_t> huge_page_bytes;
  bool gathers_huge_pages = false;        // for memory that processes share, when it is asked to
  std::optional<uint64_t> memlock_bytes;  // that this process may lock; may be kUnlimited
  std::vector<std::string> rdma_devices;
};

Machine ReadMachine();

}  // namespace farside::tools
