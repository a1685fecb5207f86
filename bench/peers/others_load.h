// How busy other processes keep the machine while something is measured: the reader of a benchmark should
// know.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"

namespace farside::peers {

// Time of all processors together since the machine started, in ticks of the kernel.
struct ProcessorTicks {
  uint64_t all = 0;
  uint64_t busy = 0;
};

// From the text of /proc/stat.
std::optional<ProcessorTicks> ParseProcessorTicks(std::string_view stat);

class OthersLoad {
 public:
  // Counts from now on. `ours` are the processes that are not others.
  explicit OthersLoad(std::vector<pid_t> ours);

  // Of all processor time since then, from 0 to 1. Absent if the kernel does not tell.
  std::optional<double> Share() const;

 private:
  Nanos Ours() const;

  const std::vector<pid_t> ours_;
  const std::optional<ProcessorTicks> before_;
  const Nanos ours_before_;
};

}  // namespace farside::peers
