#include "base/clock.h"

#include <chrono>

#include <gtest/gtest.h>

namespace farside {
namespace {

using namespace std::chrono_literals;

// Given a manual clock. When it is advanced and set. Expect it to show that time and otherwise to stand.
TEST(ManualClock, StandsUntilItIsMoved) {
  ManualClock clock;
  EXPECT_EQ(clock.Now(), 0ns);
  clock.Advance(5us);
  EXPECT_EQ(clock.Now(), 5'000ns);
  EXPECT_EQ(clock.Now(), 5'000ns);
  clock.Set(1s);
  EXPECT_EQ(clock.Now(), 1s);
}

// Given a start. Expect the clock to begin there.
TEST(ManualClock, BeginsAtItsStart) {
  const ManualClock clock(3ms);
  EXPECT_EQ(clock.Now().count(), 3'000'000);
}

// Given a manual clock behind the interface. When it moves. Expect the holder of the interface to see it.
TEST(ManualClock, IsSeenThroughTheInterface) {
  ManualClock manual;
  const Clock& clock = manual;
  manual.Advance(1ns);
  EXPECT_EQ(clock.Now(), 1ns);
}

#ifndef NDEBUG
// Given a clock at 1 s. When it is moved back. Expect an assertion.
TEST(ManualClockDeathTest, GoingBackAsserts) {
  ManualClock clock(1s);
  EXPECT_DEATH(clock.Set(999ms), "never goes backwards");
  EXPECT_DEATH(clock.Advance(-1ns), "never goes backwards");
}
#endif

// Given the machine's clock. When it is read twice. Expect it not to go back.
TEST(SteadyClock, DoesNotGoBack) {
  const SteadyClock clock;
  const Nanos first = clock.Now();
  EXPECT_GE(clock.Now(), first);
}

}  // namespace
}  // namespace farside
