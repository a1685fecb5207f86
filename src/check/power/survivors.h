// Which bytes may be left by a power cut, given the lines that are not durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/random.h"
#include "check/power/pending_lines.h"

namespace farside::check {

struct SurvivorLimits {
  // Up to so many states are visited completely: those in which every word is left by itself if they are as
  // few, else those in which every line is, and samples of the others.
  uint64_t most_states = 1024;
  uint64_t samples = 256;
};

struct SurvivorCounts {
  uint64_t states = 0;
  bool complete = false;  // all of them, word by word
};

// Calls `visit` with the visible bytes, in which of every line that is not durable something else may stand.
// False: it has seen enough. Afterwards `bytes` are as they were.
SurvivorCounts VisitSurvivors(const PendingLines& pending, const SurvivorLimits& limits, Random& random,
                              std::span<std::byte> bytes, const std::function<bool()>& visit);

}  // namespace farside::check
