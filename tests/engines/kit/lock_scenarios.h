// Locks that are released as kit/lock_release.h says, in all interleavings: what went wrong, or nothing.
#pragma once

#include <string>

namespace farside::index {

// Two clients increment a counter under a lock, twice and once. `stores_back`: failed CAS store back what
// they have read.
std::string CounterUnderALock(bool stores_back);
// The same; and a third one that waits fences the holder of the lock, and takes it over.
std::string CounterUnderALockThatIsTakenOver(bool stores_back);

}  // namespace farside::index
