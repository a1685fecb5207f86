// How many descriptors this process may have. Most systems let a process have more than they give it at
// first, and a client takes a descriptor for each node it is connected to, on both sides.
#pragma once

#include <cstdint>

#include "farside/result.h"

namespace farside::tools {

// Raises the limit as far as it goes. kOutOfMemory, with what to do about it, if that is less than `needed`.
Status RaiseDescriptorLimit(uint64_t needed);

}  // namespace farside::tools
