// The bound of a node's epoch (Control).
#pragma once

#include <cstdint>

namespace farside::pool {

// No pool raises its epoch so often. One that is larger is damaged; and since an epoch only rises, nothing
// that is retired would ever be past its grace.
inline constexpr uint64_t kMostEpoch = uint64_t{1} << 62;

}  // namespace farside::pool
