#include "base/mutant.h"

#include <gtest/gtest.h>

namespace farside {
namespace {

constexpr MutantName kSkipChecksum{"reference/skip-checksum"};

// The production form is known to the compiler. The other one is tested by switched_mutants_test.cc.
static_assert(!Mutant(kSkipChecksum));

// Given a build without mutants. When a name comes at run time. Expect false.
TEST(Mutant, IsOffInProduction) {
  const char* volatile text = "reference/skip-checksum";
  EXPECT_FALSE(Mutant(MutantName{text}));
}

}  // namespace
}  // namespace farside
