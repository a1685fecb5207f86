// Locks that are released as kit/lock_release.h says.
#include "tests/engines/kit/lock_scenarios.h"

#include <gtest/gtest.h>

namespace farside::index {
namespace {

// Given clients that increment a counter under a lock, on fabrics whose failed CAS store back or do not.
// When all interleavings are explored.
// Expect that no increment is lost, and that the lock is free in the end.
TEST(KitLocks, CounterUnderALock) {
  EXPECT_EQ(CounterUnderALock(/*stores_back=*/false), "");
  EXPECT_EQ(CounterUnderALock(/*stores_back=*/true), "");
}

// Given another one, which fences the holder that it waits for and takes the lock over.
// When all interleavings are explored.
// Expect the same.
TEST(KitLocks, CounterUnderALockThatIsTakenOver) {
  EXPECT_EQ(CounterUnderALockThatIsTakenOver(/*stores_back=*/false), "");
  EXPECT_EQ(CounterUnderALockThatIsTakenOver(/*stores_back=*/true), "");
}

}  // namespace
}  // namespace farside::index
