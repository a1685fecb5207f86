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
  // All word-by-word outcomes are visited if there are at most `most_states`. Else all line-by-line ones are,
  // or `most_states` samples of them if there are more; and then `samples` word-by-word ones.
  uint64_t most_states = 1024;
  uint64_t samples = 256;
};

struct SurvivorCounts {
  uint64_t states = 0;
  bool complete = false;  // all of them, word by word
};

// Calls `visit` once for each of these outcomes: in `bytes`, every word of a pending line is as in one of the
// versions of that line, each word by itself or all words of a line alike. `visit` returns false to stop.
// Afterwards `bytes` are as before.
SurvivorCounts VisitSurvivors(const PendingLines& pending, const SurvivorLimits& limits, Random& random,
                              std::span<std::byte> bytes, const std::function<bool()>& visit);

}  // namespace farside::check
