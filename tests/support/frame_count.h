// Counts coroutine frames, for tests of what an operation costs. The program has to be linked with
// --wrap=_ZN7farside10FrameCache8AllocateEm, as tests/CMakeLists.txt does it.
#pragma once

#include <cstdint>

namespace farside {

// Frames that this thread has taken from the FrameCache so far.
uint64_t FramesTaken();

}  // namespace farside
