#include "tests/support/frame_count.h"

#include <cstddef>

namespace farside {
namespace {

thread_local uint64_t frames_taken = 0;

}  // namespace

uint64_t FramesTaken() { return frames_taken; }

}  // namespace farside

// With --wrap, the linker puts the second one in the place of FrameCache::Allocate and keeps that under the
// name of the first one. So the library itself counts nothing.
extern "C" {
void* __real__ZN7farside10FrameCache8AllocateEm(size_t bytes);
void* __wrap__ZN7farside10FrameCache8AllocateEm(size_t bytes) {
  ++farside::frames_taken;
  return __real__ZN7farside10FrameCache8AllocateEm(bytes);
}
}
