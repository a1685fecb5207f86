// Makes inputs out of other inputs.
#pragma once

#include <vector>

#include "base/random.h"
#include "tests/fuzz/target.h"

namespace farside::fuzz {

inline constexpr size_t kMostInputBytes = size_t{1} << 16;

// An input of its own: one of the seeds with a few changes, or two of them joined. The same numbers give the
// same input.
Bytes MakeInput(const std::vector<Bytes>& seeds, Random& random);

}  // namespace farside::fuzz
