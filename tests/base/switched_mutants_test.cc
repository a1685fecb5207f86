#include "base/mutant.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace farside {
namespace {

constexpr MutantName kSkipChecksum{"reference/skip-checksum"};
constexpr MutantName kSkipLock{"reference/skip-lock"};

// Given no switch. Expect every mutant to be off.
TEST(MutantSwitch, AllAreOffByDefault) {
  EXPECT_FALSE(Mutant(kSkipChecksum));
  EXPECT_FALSE(Mutant(kSkipLock));
}

// Given a switch in a scope. Expect that mutant alone to be on, until the scope ends.
TEST(MutantSwitch, OnlyTheNamedOneIsOnUntilTheEndOfTheScope) {
  {
    const ScopedMutant on(kSkipChecksum);
    EXPECT_TRUE(Mutant(kSkipChecksum));
    EXPECT_FALSE(Mutant(kSkipLock));
  }
  EXPECT_FALSE(Mutant(kSkipChecksum));
  const ScopedMutant on(kSkipLock);
  EXPECT_TRUE(Mutant(kSkipLock));
}

// Given a name read from the command line, at another address than the engine's. Expect it to switch.
TEST(MutantSwitch, NamesAreComparedByText) {
  const std::string text = "reference/skip-checksum";
  const ScopedMutant on(MutantName{text.c_str()});
  EXPECT_TRUE(Mutant(kSkipChecksum));
}

// Given a mutant that is on in this thread. Expect it to be off in another.
TEST(MutantSwitch, OtherThreadsAreNotAffected) {
  const ScopedMutant on(kSkipChecksum);
  bool seen = true;
  std::thread([&seen] { seen = Mutant(kSkipChecksum); }).join();
  EXPECT_FALSE(seen);
}

#ifndef NDEBUG
// Given a mutant that is on. When another is switched on. Expect an assertion.
TEST(MutantSwitchDeathTest, TwoAtATimeAssert) {
  const ScopedMutant on(kSkipChecksum);
  EXPECT_DEATH(const ScopedMutant second(kSkipLock), "one mutant at a time");
}
#endif

}  // namespace
}  // namespace farside
