// Huge pages for all the memory of a node, at its start: --hugepages on.
#pragma once

#include <cstdint>
#include <functional>

#include "base/log.h"
#include "fabric/shm/shared_memory.h"
#include "farside/result.h"
#include "tools/common/machine.h"

namespace farside::tools {

// Whether so many bytes can be had: from huge pages that are reserved and free, or else from memory that is
// available. kOutOfMemory says how much of both there is, and how to get more. A kernel that is asked for
// more than there is takes minutes to find out, and most of the machine's memory meanwhile.
Status CheckHugePages(uint64_t bytes, const Machine& machine);

// Makes them. Says in the log how far it has come, if it takes long; ends early with kUnavailable when
// `stop_requested` returns true.
Status MakeHugePages(const fabric::shm::SharedMemory& memory, Logger& log,
                     const std::function<bool()>& stop_requested);

}  // namespace farside::tools
