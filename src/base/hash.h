// The hash of keys and of checksums: XXH3, 64 bits.
//
// Its values are stored in far memory and compared by clients of other builds and machines, so they are part
// of every layout: XXH3 is frozen since xxHash 0.8.0 and does not depend on byte order or on the instruction
// set. It is no defence against a writer that seeks collisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace farside {

// Functions of one table that must be independent of each other use different seeds.
uint64_t Hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t Hash64(std::string_view text, uint64_t seed = 0);

}  // namespace farside
