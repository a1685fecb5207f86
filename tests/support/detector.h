// Hunting planted bugs.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <string>
#include <vector>

#include "base/mutant.h"

namespace farside {

// Something that may catch a bug: says what it has caught, or nothing.
struct Hunt {
  std::string name;
  std::function<std::string()> run;
};

// With the bug, one hunt after the other, until one has caught it. Which one did is recorded with the test.
inline void ExpectCaught(MutantName bug, const std::vector<Hunt>& hunts) {
  const ScopedMutant mutant(bug);
  for (const Hunt& hunt : hunts) {
    const std::string caught = hunt.run();
    if (caught.empty()) continue;
    testing::Test::RecordProperty("by", hunt.name);
    testing::Test::RecordProperty("what", caught);
    return;
  }
  FAIL() << bug.text << " was not caught";
}

// "shard/no-takeover" as part of a test's name.
inline std::string NameOfBug(const testing::TestParamInfo<MutantName>& bug) {
  std::string name = bug.param.text;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

}  // namespace farside
