// Sizes in bytes as people write them in options and on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "farside/result.h"

namespace farside {

// A whole number of bytes ("64") or of KiB, MiB, GiB or TiB ("8GiB", 2^33). Nothing else: no spaces, signs
// or fractions, and neither "8G" nor "8GB", which mean 8 * 10^9 to some and 2^33 to others. Anything else
// is kInvalidArgument with a message that shows how to write it.
Result<uint64_t> ParseSize(std::string_view text);

// Exact, in the largest unit that needs no fraction, so that ParseSize reads it back: "8GiB", "1536MiB",
// "1000".
std::string FormatSize(uint64_t bytes);

}  // namespace farside
